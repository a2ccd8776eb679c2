"""English verbs: which words are verb forms, and how "I live" becomes "Rafael lives"."""

from __future__ import annotations

from functools import cache

from worker.llm.offline.text import word_list, word_set

_BASE = word_list("""
live work study like love hate prefer enjoy adore dislike despise want need know think believe play run swim cook bake
read write teach learn speak drive ride own rent buy sell move travel visit go come leave join start finish quit stop
begin keep stay stand sit sleep eat drink smoke avoid take make do have get give meet marry date divorce retire
graduate major train practice practise collect grow build design code program develop manage lead run direct own found
hire fire employ help support volunteer coach sing dance paint draw knit garden hike climb ski surf cycle walk jog
lift box fish hunt camp watch listen follow cheer root raise adopt foster feed call name use wear carry bring send
receive earn save invest spend pay owe lose win find miss remember forget plan hope wish dream try attend belong own
commute fly sail move suffer struggle recover break hurt injure see hear feel seem look become turn celebrate host
organise organize publish record release perform act film photograph translate interpret research investigate
investigate test sell trade import export cut clean wash fix repair renovate decorate drop switch change transfer
relocate settle emigrate immigrate return arrive wake identify consider worry care trust admire respect support fear
regret deal handle supervise represent serve sponsor mentor tutor crochet sew weave brew roast grill juggle skate
snowboard row wrestle meditate pray worship hold let put set hit cost read speak say tell ask answer explain mention
report open close pick choose grow drive live share split survive inherit expect approve pass fail apply enrol enroll
register sign book order cancel rely depend specialise specialize focus snore stutter limp binge stream blog podcast
tweet post subscribe weigh measure lend borrow propose gain adore moonlight freelance retrain downsize babysit
specialize fast breastfeed snack binge blush stammer restore brew sculpt carve forage kayak dive windsurf skateboard
jam busk commute cohabit divorce elope co-own sublet mortgage inject swallow vape vomit faint sneeze itch ache

end expire remarry elapse cater outgrow overcome recommend prescribe diagnose treat operate undergo upset scare bore
annoy bother relax calm
""")
_PAST = word_list("""
be:was,were,been have:had do:did,done go:went,gone come:came leave:left buy:bought sell:sold begin:began,begun
keep:kept stand:stood sit:sat sleep:slept eat:ate,eaten drink:drank,drunk take:took,taken make:made get:got,gotten
give:gave,given meet:met run:ran swim:swam,swum write:wrote,written teach:taught learn:learnt speak:spoke,spoken
drive:drove,driven ride:rode,ridden know:knew,known think:thought grow:grew,grown build:built lead:led sing:sang,sung
draw:drew,drawn feed:fed wear:wore,worn bring:brought send:sent spend:spent pay:paid lose:lost win:won find:found
forget:forgot,forgotten dream:dreamt fly:flew,flown break:broke,broken hear:heard feel:felt see:saw,seen become:became
sell:sold wake:woke,woken choose:chose,chosen tell:told say:said hold:held bind:bound catch:caught fall:fell,fallen
rise:rose fight:fought hide:hid steal:stole,stolen throw:threw,thrown lie:lay deal:dealt mean:meant
understand:understood bite:bit shoot:shot lend:lent swear:swore sweep:swept tear:tore weave:wove sew:sewed quit:quit
put:put split:split set:set hit:hit cost:cost cut:cut hurt:hurt let:let
""")
MODALS = word_set(
    "will would can could may might must shall should cannot won't wouldn't can't couldn't shouldn't mustn't"
)
AUX = word_set(
    "am is are was were be been have has had do does did don't doesn't didn't isn't aren't wasn't weren't haven't "
    "hasn't hadn't ain't 'm 's 're 've 'd 'll"
)
ADVERBS = word_set(
    "always never often sometimes usually rarely seldom just also still already currently now really truly "
    "actually only even finally recently once ever both all probably definitely absolutely mostly mainly "
    "generally not soon then simply kind sort almost nearly hardly barely"
)
DETERMINERS = word_set(
    "a an the my our his her their your its this that these those some any no two three four five six seven eight "
    "nine ten every each many much more several another both all few"
)
_AFTER_VERB = DETERMINERS | word_set(
    "in at on to for from with as about by into onto over under of up out off around near since until during not "
    "never me him us them it myself so very too there here back away together"
)
# Base forms that are as often a noun or an adjective: after "and" they are verbs only when what follows says so.
_NOUNISH = word_set(
    "work study love hate like play run cook visit start finish stop stay stand sleep drink smoke date major "
    "train practice code program lead fire help support coach dance paint garden hike climb ski surf cycle walk "
    "box fish hunt camp watch cheer root call name use wear save pay plan hope wish dream try fly sail struggle "
    "break hurt look turn host record release act film research test trade cut clean fix repair drop switch "
    "change transfer return care trust respect fear regret deal sponsor tutor roast grill row hold set hit cost "
    "read report open close pick share split pass book order focus blog podcast tweet post stream own live travel "
    "taste garden surf juice brew knit"
)


@cache
def _bases() -> frozenset[str]:
    return frozenset(_BASE) | frozenset(entry.split(":")[0] for entry in _PAST) - {"be"}


@cache
def _pasts() -> dict[str, str]:
    table: dict[str, str] = {}
    for entry in _PAST:
        base, forms = entry.split(":")
        for form in forms.split(","):
            table[form] = base
    return table


def third(base: str) -> str:
    """The third person singular of a base form."""
    if base == "have":
        return "has"
    if base.endswith("y") and base[-2:-1] not in ("a", "e", "i", "o", "u", ""):
        return base[:-1] + "ies"
    return base + ("es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else "s")


def base(word: str) -> str | None:
    """The base form of a known verb's form, or None."""
    word = word.lower()
    if word in ("am", "is", "are", "was", "were", "be", "been", "being"):
        return "be"
    if word in _bases():
        return word
    if word in _pasts():
        return _pasts()[word]
    if word in ("has", "does", "goes"):
        return {"has": "have", "does": "do", "goes": "go"}[word]
    return _regular_base(word)


def _regular_base(word: str) -> str | None:
    endings = (
        ("ies", "y"),
        ("es", ""),
        ("s", ""),
        ("ied", "y"),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
        ("es", "e"),
    )
    for ending, put in endings:
        if word.endswith(ending) and word[: -len(ending)] + put in _bases():
            return word[: -len(ending)] + put
    for ending in ("ed", "ing"):  # doubled consonant: planned, running
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) > 2 and stem[-1] == stem[-2] and stem[:-1] in _bases():
            return stem[:-1]
    return None


def is_past(word: str) -> bool:
    """A past form: irregular, or "-ed" (of any verb, known or not)."""
    word = word.lower()
    return (word in _pasts() and word not in ("been", "done", "gone")) or (
        word.endswith("ed") and len(word) > 3 and word not in ("need", "red", "bed", "feed", "speed", "indeed")
    )


def is_finite(word: str) -> bool:
    """Whether a word can be the finite verb of a clause (not a bare "-ing")."""
    word = word.lower()
    if word in MODALS or word in AUX or is_past(word):
        return True
    return base(word) is not None and (not word.endswith("ing") or word in _bases())


def is_third(word: str) -> bool:
    """A form that a third person singular subject takes."""
    word = word.lower()
    if (
        word in MODALS
        or is_past(word)
        or word in ("is", "was", "has", "does", "isn't", "wasn't", "hasn't", "doesn't", "didn't")
    ):
        return True
    return word.endswith("s") and base(word) is not None and word not in _bases()


def _is_adverb(word: str, rest: list[str]) -> bool:
    """ "barely", but not "fly" and "rely"."""
    return word.endswith("ly") and len(rest) > 1 and word not in _bases()


def starts_predicate(words: list[str], *, third_only: bool = False, last: bool = False) -> bool:
    """Whether ``words`` (what follows "and", or a clause without subject) begin with a finite verb.

    ``last``: they are cut from their sentence already, so a verb may stand alone ("still drives").
    """
    rest = [w.lower() for w in words]
    if rest[:2] == ["no", "longer"]:
        rest = rest[2:]
    while rest and (rest[0] in ADVERBS or _is_adverb(rest[0], rest)):
        rest = rest[1:]
    if not rest:
        return False
    if rest[0] in MODALS or rest[0] in AUX or is_past(rest[0]) or is_third(rest[0]):
        return last or len(rest) > 1 or is_past(rest[0])
    if third_only or base(rest[0]) is None or rest[0].endswith("ing"):
        return False
    return rest[0] not in _NOUNISH or (len(rest) > 1 and rest[1] in _AFTER_VERB)


# Auxiliaries and contractions in the third person singular.
_AGREED = {
    "am": "is",
    "'m": "is",
    "are": "is",
    "'re": "is",
    "have": "has",
    "'ve": "has",
    "do": "does",
    "don't": "does not",
    "haven't": "has not",
    "aren't": "is not",
    "ain't": "is not",
    "isn't": "is not",
    "were": "was",
    "weren't": "was not",
    "wasn't": "was not",
    "didn't": "did not",
    "hadn't": "had not",
    "'ll": "will",
    "won't": "will not",
    "can't": "cannot",
    "'d": "would",
    "couldn't": "could not",
    "doesn't": "does not",
    "hasn't": "has not",
    "was": "was",
    "is": "is",
    "has": "has",
    "'s": "is",
}


def agree(words: list[str]) -> list[str] | None:
    """A first person predicate in the third ("really like tea": "really likes tea"); None if no verb heads it."""
    head: list[str] = []
    rest = list(words)
    if [w.lower() for w in rest[:2]] == ["no", "longer"]:
        head, rest = rest[:2], rest[2:]
    while rest and (rest[0].lower() in ADVERBS or _is_adverb(rest[0].lower(), rest)):
        head.append(rest.pop(0))
    if not rest:
        return None
    verb = rest[0].lower()
    if verb in _AGREED:
        return [*head, *_AGREED[verb].split(), *rest[1:]]
    if verb in MODALS or is_past(verb) or is_third(verb):
        return [*head, verb, *rest[1:]]
    if verb in _bases():
        return [*head, third(verb), *rest[1:]]
    # An unknown word right after "I" is a verb all the same ("I yodel").
    return (
        [*head, third(verb), *rest[1:]]
        if verb.isalpha() and verb not in _AFTER_VERB and not verb.endswith("ing")
        else None
    )
