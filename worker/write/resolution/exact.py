"""The phase without any model: aliases, slugs, display names, and the first-name rule for persons (behaviour: 6.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from worker.write.entity_types import family, is_person, unsure
from worker.write.names import entity_key, fold
from worker.write.persons import MIN_PREFIX, may_be_same, person_name, prefix_match
from worker.write.pronouns import is_pointing
from worker.write.resolution.cast import Cast, Node
from worker.write.resolution.known import PER_PREFIX, Known
from worker.write.roles import read_phrase
from worker.write.scripts import is_cjk

COLLISIONS = 6  # how many suffixed keys are looked up, so that a new key can be chosen without another question


def nicknames(config: Mapping[str, str]) -> dict[str, str]:
    """The deployment's nicknames, folded: nickname -> first name."""
    return {fold(short): fold(full) for short, full in config.items() if fold(short) and fold(full)}


def first_names(first: str, nicks: Mapping[str, str]) -> set[str]:
    """A first name and those that a nickname list makes equal to it."""
    full = nicks.get(first, first)
    return {first, full, *(short for short, long in nicks.items() if long == full)}


def names_to_find(nodes: Iterable[Node], nicks: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """The folded names to find by equality, and the first names to find by prefix, for persons."""
    names: set[str] = set()
    prefixes: set[str] = set()
    for node in nodes:
        names.update(node.forms())
        if not node.person or node.phrase is not None:
            continue
        parts = person_name(node.shown)
        for first in first_names(parts.first, nicks):
            if len(first) < MIN_PREFIX or any(map(is_cjk, first)):
                continue
            prefixes.add(first)
            for length in range(MIN_PREFIX, len(first) + 1):
                # A stored short form of the first name, alone or with what follows it here.
                names.update(" ".join((first[:length], *parts.rest[:kept])) for kept in range(len(parts.rest) + 1))
    return names, prefixes


def keys_to_find(nodes: Iterable[Node]) -> set[str]:
    """The keys that the nodes would get, and what they would get if these were somebody else's."""
    return {key for node in nodes for key in candidate_keys(entity_key(node.entity_type, node.shown))}


def candidate_keys(key: str) -> list[str]:
    """``key``, then ``key_2`` and so on, each within the limit of length."""
    return [key, *(f"{key[: 128 - len(str(n)) - 1]}_{n}" for n in range(2, COLLISIONS + 1))]


def settle_exact(cast: Cast, node: Node, known: Sequence[Known]) -> None:
    """Settle ``node`` where a stored name is its name, or one of its aliases."""
    if is_pointing(node.shown):
        return
    for place, form in enumerate(node.forms()):
        hits = [one for one in known if form in one.matched or form in one.folded()]
        if place == 0 and not hits:
            key = entity_key(node.entity_type, node.shown)
            hits = [one for one in known if key in one.reached and not one.placeholder]
        chosen = _of_type(node, hits)
        if chosen is None or _taken_by_other(cast, node, chosen.key):
            continue
        # A name that is stored is that entity's, whatever else it is called; an alias must not carry a guard away.
        if place and may_be_same(node.shown, chosen.display, node.entity_type, chosen.entity_type) is not None:
            continue
        settle(node, chosen, "exact" if place == 0 else "alias", why=f"stored name {form!r}")
        return


def settle_prefix(cast: Cast, node: Node, known: Sequence[Known], nicks: Mapping[str, str]) -> list[Known]:
    """Settle a person by the first-name rule where one candidate fits; else return those that fit, none or several."""
    if not node.person or node.settled or node.phrase is not None:
        return []
    fits = [one for one in known if _fits(node, one, nicks) and not _taken_by_other(cast, node, one.key)]
    first = person_name(node.shown).first
    whole = [one for one in fits if any(person_name(name).first == first for name in real_names(one))]
    partial = [one for one in fits if not any(other.key == one.key and other is not node for other in cast.nodes)]
    candidates = whole or partial
    if len(candidates) == 1 and (whole or not _saturated(node, known, nicks)):
        settle(node, candidates[0], "prefix", why=f"first name of {candidates[0].display!r}, the only one that fits")
        return []
    return fits


def settle_within(cast: Cast, node: Node) -> None:
    """Let a person whose bare first name begins one other name of the message be that one ("Ana" and "Ana Lima")."""
    if not node.person or node.settled or node.phrase is not None:
        return
    mine = person_name(node.shown)
    fits = []
    for other in cast.nodes:
        if other is node or not other.person or other.phrase is not None or cast.are_apart(node, other):
            continue
        theirs = person_name(other.shown)
        if theirs.first == mine.first and (not mine.rest or not theirs.rest) and prefix_match(node.shown, other.shown):
            fits.append(other)
    if len(fits) == 1 and (fits[0].settled or len(fits[0].shown) >= len(node.shown)):
        join(cast, node, fits[0])


def settle_pointing(cast: Cast, node: Node) -> None:
    """Let "she" be the only other person whom the message names; she is nobody whom an earlier message called so."""
    others = [other for other in cast.nodes if other is not node and not other.speaker and other.person]
    others = [other for other in others if not is_pointing(other.shown) and not cast.are_apart(node, other)]
    if is_pointing(node.shown) and len(others) == 1:
        cast.absorb(node, others[0])


def join(cast: Cast, node: Node, other: Node) -> None:
    """Make ``node`` another spelling of ``other`` in this message."""
    other.aliases.extend(name for name in (node.shown, *node.aliases) if name not in other.aliases)
    other.roles.extend(role for role in node.roles if role not in other.roles)
    cast.absorb(node, other)


def settle(node: Node, known: Known, method: str, *, why: str, score: float | None = None) -> None:
    """Decide that ``node`` is the stored entity ``known``."""
    node.key, node.known, node.is_new = known.key, known, False
    node.entity_type, node.display = known.key.partition(":")[0], known.display
    node.method, node.why, node.score = method, why, score


def real_names(known: Known) -> list[str]:
    """The names of an entity without the phrases that only say whose brother it is."""
    return [name for name in known.names() if read_phrase(name) is None]


# -- parts -------------------------------------------------------------------------------------------------------------


def _of_type(node: Node, hits: Sequence[Known]) -> Known | None:
    """The one of equally named entities that the type allows; an unsure type takes the only one there is."""
    same = [one for one in hits if family(one.entity_type) == family(node.entity_type)]
    if same:
        return same[0]
    if not node.typed or unsure(node.entity_type):
        return hits[0] if len({one.key for one in hits}) == 1 else None
    unsaid = [one for one in hits if unsure(one.entity_type)]
    return unsaid[0] if len(unsaid) == 1 else None


def _fits(node: Node, known: Known, nicks: Mapping[str, str]) -> bool:
    if not is_person(known.entity_type) or known.placeholder:
        return False
    names = real_names(known)
    if not any(prefix_match(node.shown, name, nicks) for name in names):
        return False
    # Nothing that the entity is called may contradict: "Ana Lima" is not the "Ana" who is also "Ana Souza".
    return all(may_be_same(node.shown, name, "person", "person") is None for name in _fullest(names))


def _fullest(names: Sequence[str]) -> list[str]:
    return [name for name in names if person_name(name).rest]


def _saturated(node: Node, known: Sequence[Known], nicks: Mapping[str, str]) -> bool:
    """Whether so many stored names begin like this one that not all were read."""
    found = [alias for one in known for alias in one.matched]
    return any(
        sum(alias.startswith(first) for alias in found) >= PER_PREFIX
        for first in first_names(person_name(node.shown).first, nicks)
    )


def _taken_by_other(cast: Cast, node: Node, key: str) -> bool:
    """Whether the entity is somebody in this message who stands in a relation to ``node``."""
    return any(other.key == key and cast.are_apart(node, other) for other in cast.nodes)
