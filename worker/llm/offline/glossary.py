"""A small Portuguese–English glossary: enough to compare and restate plain facts, not to translate prose."""

from __future__ import annotations

import re

from worker.llm.offline.roles import role_of
from worker.llm.offline.text import fold, folded_words

_PAIRS = """
cafe coffee|cha tea|leite milk|agua water|vinho wine|cerveja beer|carne meat|peixe fish|frango chicken|arroz rice
pao bread|queijo cheese|camarao shrimp|amendoim peanuts|amendoim peanut|gluten gluten|lactose lactose
coentro coriander|coentro cilantro|chocolate chocolate|carro car|moto motorbike|moto motorcycle|bicicleta bike
bicicleta bicycle|casa house|apartamento flat|apartamento apartment|azul blue|vermelho red|verde green|preto black
branco white|amarelo yellow|cinza gray|cinza grey|praia beach|montanha mountain|montanha mountains|frio cold
calor heat|musica music|jazz jazz|futebol football|futebol soccer|natacao swimming|corrida running|leitura reading
livros books|cinema movies|filmes movies|viagem travel|viajar traveling|cozinhar cooking|danca dancing|violao guitar
piano piano|bateria drums|cachorro dog|gato cat|passaro bird|cavalo horse|coelho rabbit|medico doctor|medica doctor
enfermeiro nurse|enfermeira nurse|engenheiro engineer|engenheira engineer|professor teacher|professora teacher
advogado lawyer|advogada lawyer|arquiteto architect|arquiteta architect|gerente manager|analista analyst
estudante student|jornalista journalist|designer designer|cozinheiro cook|cozinheira cook|desenvolvedor developer
desenvolvedora developer|programador programmer|programadora programmer|vendedor salesperson|vegetariano vegetarian
vegetariana vegetarian|vegano vegan|vegana vegan|solteiro single|solteira single|casado married|casada married
divorciado divorced|divorciada divorced|viuvo widowed|viuva widowed|ingles english|frances french|espanhol spanish
alemao german|italiano italian|japones japanese|portugues portuguese|medicina medicine|direito law
psicologia psychology|arquitetura architecture|engenharia engineering|software software|produto product|dados data
asma asthma|diabetes diabetes|penicilina penicillin|filhos children|filho son|filha daughter|comida food|cor color
cor colour|banda band|londres london|lisboa lisbon|munique munich|milao milan|roma rome|paris paris|berlim berlin
toquio tokyo|brasil brazil|alemanha germany|franca france|espanha spain|italia italy|japao japan|chefe chef
civil civil|toda every|todo every|dois two|tres three|quatro four|gatos cats|cachorros dogs|um one
"""
_TO_ENGLISH: dict[str, str] = {}
for _pair in re.split(r"[|\n]", _PAIRS.strip()):
    _from, _to = _pair.split()
    _TO_ENGLISH.setdefault(_from, _to)
_SYNONYMS = {
    "cilantro": "coriander",
    "peanut": "peanuts",
    "motorcycle": "motorbike",
    "bicycle": "bike",
    "apartment": "flat",
    "soccer": "football",
    "grey": "gray",
    "colour": "color",
    "mountains": "mountain",
    "favourite": "favorite",
}


def concept(word: str) -> str:
    """The form in which a word of either language is compared with one of the other."""
    folded = fold(word)
    folded = _TO_ENGLISH.get(folded, folded)
    return _SYNONYMS.get(folded, folded)


def concepts(text: str) -> list[str]:
    """The words of a text in that form."""
    return [concept(word) for word in folded_words(text)]


def english_of(value: str) -> str | None:
    """A short Portuguese value in English; names and numbers stay; None where a plain word is not in the glossary."""
    out: list[str] = []
    for raw in value.split():
        folded = fold(raw).strip(",.")
        role = role_of(raw)
        if not raw[:1].islower():
            out.append(raw)
        elif folded in _TO_ENGLISH:
            out.append(_TO_ENGLISH[folded])
        elif role is not None:
            out.append(role.english)
        elif folded in ("de", "da", "do", "o", "a", "os", "as", "e"):
            out.append({"e": "and", "de": "of", "da": "of", "do": "of"}.get(folded, ""))
        else:
            return None
    text = re.sub(r"\s+", " ", " ".join(out)).strip()
    # "engineer of software" reads wrong: an English modifier stands first.
    text = re.sub(r"^([a-z]+) of ([a-z]+)$", r"\2 \1", text)
    text = re.sub(r"^([a-z]+) (blue|red|green|black|white|yellow|gray|civil)$", r"\2 \1", text)
    return text or None
