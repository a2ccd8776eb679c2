"""A feeling by a short list of words: honest about how little it knows, never a guess without a word for it."""

from __future__ import annotations

import re

from worker.llm.offline.text import fold

_WORDS = {
    "joy": "happy glad great wonderful awesome amazing excited delighted thrilled love loved joy yay hooray fun "
    "lol haha "
    "hilarious feliz alegre otimo maravilh\\w* incrivel adorei amei animad[ao] contente eba kkk+ rsrs oba",
    "sadness": "sad unhappy depressed crying cried miss lonely heartbroken sorry died funeral triste chor\\w+ "
    "saudade[s]? "
    "sozinh[ao] deprimid[ao] faleceu morreu luto infelizmente",
    "anger": "angry furious hate mad annoyed pissed outraged raiva odeio furios[ao] irritad[ao] revoltad[ao] puto puta",
    "fear": "afraid scared worried anxious nervous terrified panic medo preocupad[ao] ansios[ao] nervos[ao] "
    "assustad[ao]",
    "surprise": "surprised wow unexpected unbelievable omg surpres[ao] nossa caramba uau inacreditavel",
    "disgust": "disgusting gross yuck nasty nojo nojent[ao] credo eca repugnante",
    "trust": "trust rely grateful thank thanks confio confianca gratidao grat[ao] obrigad[ao]",
    # An underscore stands for the space inside a phrase.
    "anticipation": "looking_forward can't_wait cannot_wait soon hope planning mal_posso_esperar espero",
}
_PATTERNS = {
    name: re.compile(r"(?<!\w)(?:" + "|".join(spec.split()).replace("_", " ") + r")(?!\w)")
    for name, spec in _WORDS.items()
}
_NEGATED = re.compile(r"\b(?:not|n't|never|nao|nunca|nem)\s+(?:\w+\s+)?$")
_LOUD = re.compile(r"!{1,}|\b(?:so|very|really|extremely|muito|demais|super|tao)\b")


def feel(text: str) -> dict[str, object]:
    """Primary emotion, intensity 0.0 to 1.0 and energy of ``text``; neutral where no word says otherwise."""
    folded = fold(text)
    scores: dict[str, int] = {}
    for name, pattern in _PATTERNS.items():
        hits = sum(1 for m in pattern.finditer(folded) if not _NEGATED.search(folded[: m.start()]))
        if hits:
            scores[name] = hits
    loud = len(_LOUD.findall(folded)) + (1 if len(text) > 8 and text.isupper() else 0)
    if not scores:
        return {"primary": "neutral", "intensity": 0.0, "energy_level": "high" if loud > 1 else "medium"}
    primary = max(scores, key=lambda name: scores[name])
    intensity = min(1.0, round(0.4 + 0.15 * (scores[primary] - 1) + 0.15 * loud, 2))
    low = primary in ("sadness", "disgust") and not loud
    return {"primary": primary, "intensity": intensity, "energy_level": "high" if loud else "low" if low else "medium"}
