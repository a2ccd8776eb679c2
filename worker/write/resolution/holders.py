"""Who holds a role: "my brother" is the brother whom the agent knows, else a placeholder (behaviour: 6, "Decided").

Never the speaker: the brother's illness is not Rafael's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from worker.write.entity_types import family
from worker.write.kinship import Role, edges_of, excludes
from worker.write.names import fold
from worker.write.plans import RoleEdge
from worker.write.resolution.cast import Cast, Node
from worker.write.resolution.exact import candidate_keys, settle
from worker.write.resolution.known import Edge, Holders, Known
from worker.write.roles import RolePhrase, phrases, read_phrase

Said = Sequence[tuple[Node, Node, str]]  # the message's own relations: source, target, rel_type


def role_names(cast: Cast) -> set[str]:
    """The folded phrases under which the holders of the message's roles may be stored."""
    found: set[str] = set()
    for _, phrase, anchor in _roles(cast):
        for name in _names_of(anchor):
            found.update(phrases(phrase.role, phrase.qualifier, name))
    return found


def rel_types(cast: Cast) -> set[str]:
    """The types of the edges that show who holds the message's roles."""
    return {rel_type for _, phrase, _ in _roles(cast) for rel_type, _ in edges_of(phrase.role)}


def anchors(cast: Cast) -> list[Node]:
    """Those whose roles the message names."""
    return list({id(anchor): anchor for _, _, anchor in _roles(cast)}.values())


def placeholder_keys(cast: Cast) -> set[str]:
    """The keys of the placeholders that the message's roles may need."""
    return {
        key
        for node, phrase, anchor in _roles(cast)
        if node.phrase is phrase and anchor.key
        for key in candidate_keys(_placeholder_key(phrase, anchor))
    }


def join_within(cast: Cast, said: Said) -> None:
    """A bare role whose holder the same message names is that person: by a role beside the name, or by a relation."""
    for node in list(cast.nodes):
        phrase = node.phrase
        if phrase is None or node.settled:
            continue
        anchor = cast.anchor(phrase)
        named = [
            other
            for other in cast.nodes
            if other is not node
            and other.phrase is None
            and (
                any(_agree(phrase, role) and cast.anchor(role) is anchor for role in other.roles)
                or any(_shows(phrase.role, edge, anchor, other) for edge in said)
            )
        ]
        if len(named) == 1:
            cast.absorb(node, named[0])


def settle_role(cast: Cast, node: Node, known: Sequence[Known], holders: Holders) -> list[Known]:
    """Settle a bare role on the one who is known to hold it; else return those who may, none or several."""
    phrase = node.phrase
    if phrase is None:
        return []
    anchor = cast.anchor(phrase)
    by_alias, by_edge = _candidates(phrase, anchor, known, holders)
    if node.indefinite:  # "a friend of mine" is not the friend whom one knows by name
        by_alias, by_edge = [one for one in by_alias if one.placeholder], []
    named = [one for one in by_edge if not one.placeholder]
    held = [one for one in by_alias if any(one.key == other.key for other in by_edge)]
    held = [one for one in held if not (one.placeholder and named)]  # a known name goes before a nameless holder
    for candidates, source in (
        (held, "name and edge"),
        (named, "edge"),
        (by_edge, "edge"),
        (by_alias, "stored phrase"),
    ):
        if len(candidates) == 1:
            why = f"{phrase.role.name} of {_shown(anchor)!r} by {source}"
            settle(node, candidates[0], "role", why=why)
            return []
        if candidates:
            return candidates
    return []


def adopt_placeholder(cast: Cast, node: Node, known: Sequence[Known], holders: Holders) -> None:
    """Let a name that nobody knows take the place of the placeholder of its role: the brother is Pedro.

    A Pedro who is known already stays himself, and so does the placeholder: he may have two brothers. From then on
    "my brother" means Pedro; whether the nameless one was he is for the job that merges entities, which asks a model.
    """
    for phrase in node.roles:
        if node.settled or node.indefinite:
            return
        by_alias, by_edge = _candidates(phrase, cast.anchor(phrase), known, holders)
        free = {one.key: one for one in (*by_alias, *by_edge) if one.placeholder}
        free = {key: one for key, one in free.items() if not any(other.key == key for other in cast.nodes)}
        if len(free) == 1:
            (placeholder,) = free.values()
            settle(node, placeholder, "alias", why=f"the {phrase.role.name} who was known by role only")
            node.display = node.shown


def make_placeholder(cast: Cast, node: Node, taken: set[str], holders: Holders) -> None:
    """Make the person whom only a role names, with a key of its own."""
    phrase = node.phrase
    if phrase is None:
        raise ValueError("not a role")
    anchor = cast.anchor(phrase)
    node.display = placeholder_display(cast, node)
    for key in candidate_keys(_placeholder_key(phrase, anchor)):
        stored = holders.known.get(key)
        if stored is not None and stored.placeholder and fold(stored.display) == fold(node.display):
            settle(node, stored, "role", why="known by role only")
            return
        if key not in taken:
            node.key = key
            break
    else:
        node.key = f"{_placeholder_key(phrase, anchor)[:90]}_{cast.message.event_id.hex[:12]}"
    node.method, node.is_new, node.entity_type = "placeholder", True, phrase.role.entity_type
    node.why = f"nobody is known as {phrase.role.name} of {_shown(anchor)!r}"


def placeholder_display(cast: Cast, node: Node) -> str:
    """What a placeholder is called, in the language of the message: "irmão de Rafael"."""
    if node.phrase is None:
        return node.shown
    return node.phrase.display(_shown(cast.anchor(node.phrase)), cast.message.text)


def role_edges(cast: Cast, said: Said, holders: Holders) -> list[RoleEdge]:
    """The edges that the message's roles stand for and that neither it nor the memory states already."""
    edges: dict[tuple[str, str, str], RoleEdge] = {}
    for node, phrase, anchor in _roles(cast):
        if not node.key or not anchor.key or node.key == anchor.key:
            continue
        if any(_shows(phrase.role, edge, anchor, node) for edge in said):
            continue
        if node.phrase is phrase and any(_edge_shows(phrase.role, one, anchor.key, node.key) for one in holders.edges):
            continue
        ends = (node.key, anchor.key) if phrase.role.holder_first else (anchor.key, node.key)
        edges.setdefault(
            (*ends, phrase.role.rel_type),
            RoleEdge(source_key=ends[0], target_key=ends[1], rel_type=phrase.role.rel_type),
        )
    return list(edges.values())


# -- parts -------------------------------------------------------------------------------------------------------------


def _roles(cast: Cast) -> Iterable[tuple[Node, RolePhrase, Node]]:
    """Each role of the message: its holder, the phrase, and whose role it is."""
    for node in list(cast.nodes):
        for phrase in (*([node.phrase] if node.phrase else []), *node.roles):
            anchor = cast.anchor(phrase)
            if anchor is not node:
                yield node, phrase, anchor


def _names_of(anchor: Node) -> list[str]:
    return list(dict.fromkeys(filter(None, (anchor.shown, anchor.display))))


def _shown(anchor: Node) -> str:
    return anchor.display or anchor.shown


def _placeholder_key(phrase: RolePhrase, anchor: Node) -> str:
    tail = f"_{phrase.slug_part}"
    owner = anchor.key.partition(":")[2]
    return f"{phrase.role.entity_type}:{owner[: 120 - len(tail)]}{tail}"


def _agree(one: RolePhrase, other: RolePhrase) -> bool:
    """Whether two phrases may name one holder: "brother" and "older brother" may, two different qualifiers do not."""
    same = one.role.rel_type == other.role.rel_type and not excludes(one.role, other.role)
    return same and (one.qualifier == other.qualifier or not (one.qualifier and other.qualifier))


def _candidates(
    phrase: RolePhrase, anchor: Node, known: Sequence[Known], holders: Holders
) -> tuple[list[Known], list[Known]]:
    """Those who may hold the role: by a stored phrase, and by a live edge that no stored phrase contradicts."""
    spoken = {name for owner in _names_of(anchor) for name in phrases(phrase.role, phrase.qualifier, owner)}
    by_alias = [one for one in known if one.key != anchor.key and spoken & one.matched and _is_kind(phrase.role, one)]
    others = {
        (edge.target if edge.source == anchor.key else edge.source): None
        for edge in holders.edges
        if _edge_shows(phrase.role, edge, anchor.key, None)
    }
    stored = [one for key in others if (one := holders.known.get(key)) and _is_kind(phrase.role, one)]
    if phrase.role.entity_type == "pet":  # one owns many things; only a phrase tells the dog from the cat
        stored = [one for one in stored if spoken & one.folded()]
    return by_alias, [one for one in stored if not _contradicted(phrase, one, _names_of(anchor))]


def _is_kind(role: Role, known: Known) -> bool:
    return family(known.entity_type) == role.entity_type


def _contradicted(phrase: RolePhrase, known: Known, owners: Sequence[str]) -> bool:
    """Whether a stored phrase says that this is the sister, not the brother, or the younger one, not the older."""
    own = {fold(owner) for owner in owners}
    told = [
        role
        for alias in known.names()
        if (role := read_phrase(alias)) is not None and fold(role.anchor or "") in own and not role.rest
    ]
    same = [role for role in told if role.role.rel_type == phrase.role.rel_type]
    return bool(same) and not any(_agree(phrase, role) for role in same)


def _shows(role: Role, edge: tuple[Node, Node, str], anchor: Node, holder: Node) -> bool:
    source, target, rel_type = edge
    if {id(source), id(target)} != {id(anchor), id(holder)}:
        return False
    return any(
        rel_type.casefold() == kind and (from_holder is None or (source is holder) == from_holder)
        for kind, from_holder in edges_of(role)
    )


def _edge_shows(role: Role, edge: Edge, anchor: str, holder: str | None) -> bool:
    if anchor not in (edge.source, edge.target) or (holder is not None and holder not in (edge.source, edge.target)):
        return False
    return any(
        edge.rel_type == kind and (from_holder is None or (edge.target == anchor) == from_holder)
        for kind, from_holder in edges_of(role)
    )
