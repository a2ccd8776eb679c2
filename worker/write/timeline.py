"""Facts in world time: where a new one belongs among the versions that are stored (behaviour: 8, "Time").

Pure: it moves versions about in memory, and ``worker.write.fact_rows`` reads and writes them. The order in which
messages come in must not change the outcome, so everything is placed by the time at which it was said, never by the
time of arrival. A time that nobody knows (None) is older than any that is known.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Literal
from uuid import UUID

from worker.write.corrections import is_user_correction
from worker.write.polarity import polarity

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Effect = Literal["added", "updated", "unchanged", "deleted"]


def moment(at: datetime | None) -> datetime:
    """A time to compare by; the unknown one comes before all others."""
    return _LONG_AGO if at is None else at


@dataclass(frozen=True, slots=True)
class Wording:
    """How one message put a fact: its words, and what was made of them."""

    text: str
    text_hash: bytes
    confidence: float
    importance: float
    attribute_key: str | None = None
    value: str | None = None
    source_context: str | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """One message that said a fact, when (None: unknown), and how (None: as the version puts it)."""

    event_id: UUID
    at: datetime | None
    wording: Wording | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """A confirmation to be stored with a version; ``was`` is the version that it stood with before."""

    version: UUID
    said: Said
    was: UUID | None = None


@dataclass(slots=True)
class Version:
    """One fact as it is stored or will be. ``said`` holds its source and every confirmation."""

    id: UUID
    entity_key: str
    text: str
    text_hash: bytes
    confidence: float
    said: list[Said]
    source_event_id: UUID
    valid_from: datetime | None
    valid_to: datetime | None = None
    invalidated_at: datetime | None = None
    supersedes: UUID | None = None
    kind: str = "fact"
    importance: float = 0.5
    attribute_key: str | None = None
    value: str | None = None
    event_date: date | None = None
    event_date_precision: str | None = None
    source_context: str | None = None
    last_confirmed_at: datetime | None = None
    confirmations: int = 0
    corrections: int = 0
    planned: int | None = None  # index of the planned fact that it is stored for
    copy_of: UUID | None = None  # split off from this version by a late message
    rephrased: bool = False  # a late message put it first: it has that one's words now

    @property
    def stored(self) -> bool:
        """Whether the database has it already."""
        return self.planned is None and self.copy_of is None

    def wording(self) -> Wording:
        """How it is put."""
        return Wording(
            self.text, self.text_hash, self.confidence, self.importance, self.attribute_key, self.value,
            self.source_context,
        )  # fmt: skip

    def put(self, wording: Wording) -> None:
        """Let it be put as ``wording`` is. What others said with other words than these keeps their own."""
        mine = self.wording()
        self.said = [
            replace(said, wording=None if (said.wording or mine) == wording else said.wording or mine)
            for said in self.said
        ]
        self.text, self.text_hash = wording.text, wording.text_hash
        self.confidence, self.importance = wording.confidence, wording.importance
        self.attribute_key, self.value = wording.attribute_key, wording.value
        self.source_context = wording.source_context

    def covers(self, at: datetime | None) -> bool:
        """Whether it is true at ``at``."""
        return moment(self.valid_from) <= moment(at) and (self.valid_to is None or moment(self.valid_to) > moment(at))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a planned fact: the version that stands for it, and the one that it closed."""

    effect: Effect
    version: Version
    replaced: Version | None = None


def _nothing_parted(over: Version, other: Version) -> bool:  # noqa: ARG001
    return False


@dataclass(slots=True)
class Timeline:
    """The versions that a message can touch, and what it does to them. ``event_id`` and ``at`` are the message's.

    ``parted(over, other)`` says whether ``over`` tells of an ending that ``other``, being about something else, leaves
    true ("left Acme", "works at Orion").
    """

    event_id: UUID
    at: datetime | None
    now: datetime
    parted: Callable[[Version, Version], bool] = _nothing_parted
    versions: dict[UUID, Version] = field(default_factory=dict)
    changed: set[UUID] = field(default_factory=set)
    new_said: list[Noted] = field(default_factory=list)  # confirmations to be noted
    displaced: list[Noted] = field(default_factory=list)  # confirmations in words that their version had until now
    dropped_said: list[tuple[UUID, UUID]] = field(default_factory=list)  # (version, event) that is noted elsewhere now

    def load(self, versions: Iterable[Version]) -> None:
        """Take in stored versions."""
        self.versions.update((version.id, version) for version in versions)

    # -- the four decisions ------------------------------------------------------------------------------------------

    def add(self, new: Version, closed_by: UUID | None = None) -> Outcome:
        """ADD. ``closed_by`` is a later retraction that ends it. The same text, if active, is confirmed instead."""
        end = self._retracted_at(closed_by)
        twin = self._active_twin(new)
        if twin is not None and not (end is not None and moment(end) <= moment(twin.valid_from)):
            return self.confirm(new, twin)
        self._close(new, end)
        self._let_follow(new, closed_by)
        self.versions[new.id] = new
        return Outcome("added", new)

    def update(self, new: Version, target: Version, closed_by: UUID | None = None) -> Outcome:
        """UPDATE: put ``new`` into the target's chain, at its place in world time.

        It closes the version before it and ends where the next one begins, so a late one lands already closed. A chain
        that had ended before the message is left alone: ADD. A chain stays linear.
        """
        if target.kind == "retraction":
            return self.add(new, closed_by or target.id)
        twin = self._active_twin(new)
        if twin is not None and twin.covers(self.at):
            return self.confirm(new, twin)
        before, after = self._around(target)
        if before is not None and after is None and not before.covers(self.at):
            return self.add(new, closed_by)
        retracted = self._retracted_at(closed_by)
        if after is not None and retracted is None and self._continued_by(new, before, after):
            return self.confirm(new, after)
        end = before.valid_to if before is not None and before.covers(self.at) else None
        if before is not None and after is None and polarity(new.text) and not polarity(before.text):
            end = None  # what ended "likes jazz" does not end "does not like jazz"
        if before is not None:
            after = self._split(before) or after
            self._end(before, self.at or self.now)
            new.supersedes = before.id
            if after is not None and is_user_correction(before, after):
                before.corrections -= 1  # the late one is what corrects it
            before.corrections = max(0, before.corrections) + is_user_correction(before, new)
        if after is not None and self.parted(new, after):  # what comes next goes on beside it
            after.supersedes, end = None, None
            self.changed.add(after.id)
            after = None
        if after is not None and (end is None or moment(after.valid_from) < end):
            end = after.valid_from
        if after is not None:
            after.supersedes = new.id
            new.corrections += is_user_correction(new, after)
            self.changed.add(after.id)
        if retracted is not None and (end is None or retracted < end):
            end = retracted
            if after is not None:
                after.supersedes = None
        self._close(new, end)
        self._let_follow(new, closed_by)
        self.versions[new.id] = new
        return Outcome("updated" if before is not None else "added", new, before)

    def confirm(self, new: Version, target: Version) -> Outcome:
        """NOOP: ``last_confirmed_at`` never goes back, ``valid_from`` goes back to an older message's time.

        What was over before the message, or begins only behind another version, cannot be confirmed by it: then the
        text is put in its own place as a fact.
        """
        if target.valid_to is not None and moment(target.valid_to) <= moment(self.at) and self.at is not None:
            return self.add(new) if self._active_twin(new) is not target else Outcome("unchanged", target)
        before = self.versions.get(target.supersedes) if target.supersedes else None
        after = self._successor(target)
        if self.at is not None and target.valid_from is None and after is not None and after.valid_from is None:
            return self.update(new, target)  # dated, it is newer than what replaced it at a time that nobody knows
        if self.at is not None and moment(target.valid_from) > self.at and before is not None:
            if moment(before.valid_from) > self.at or self._said_later(before):
                return self.update(new, before)
            self._end(before, self.at)
        undated_first = target.valid_from is None and target.supersedes is None  # a known time is better than none
        if self.at is not None and (undated_first or moment(target.valid_from) > self.at):
            if not undated_first:
                self._rephrase(target, new)
            target.valid_from = self.at
        self._note(target, new)
        return Outcome("unchanged", target)

    def retract(self, new: Version, target: Version | None) -> Outcome:
        """DELETE: keep ``new`` as a dated retraction; close what was true before it and nothing that began after it."""
        new.kind = "retraction"
        self._close(new, self.at or self.now)
        self.versions[new.id] = new
        if target is None or target.kind == "retraction":
            return Outcome("deleted", new)
        before, after = self._around(target)
        if before is None or not before.covers(self.at) or (self.at is None and before.valid_to is not None):
            return Outcome("deleted", new)
        rest = self._split(before) or after
        self._end(before, self.at or self.now)
        if rest is not None:
            rest.supersedes = None  # nothing follows on what a retraction ended
            self.changed.add(rest.id)
        return Outcome("deleted", new, before)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _around(self, target: Version) -> tuple[Version | None, Version | None]:
        """The last version of the target's chain that began by the message's time, and the one behind it."""
        before: Version | None = target
        after: Version | None = self._successor(target)
        while before is not None and moment(before.valid_from) > moment(self.at):
            after, before = before, self.versions.get(before.supersedes) if before.supersedes else None
        while before is not None and after is not None and moment(after.valid_from) <= moment(self.at):
            before, after = after, self._successor(after)
        return before, after

    def _continued_by(self, new: Version, before: Version | None, after: Version) -> bool:
        """Whether what comes next says the same, so that a late ``new`` is its beginning."""
        same = after.entity_key == new.entity_key and self._same_words(after, new)
        return same and self.at is not None and (before is None or not self._said_later(before))

    def _successor(self, version: Version) -> Version | None:
        return next((other for other in self.versions.values() if other.supersedes == version.id), None)

    def _active_twin(self, new: Version) -> Version | None:
        """An active version of the same text: there may be one only."""
        for other in self.versions.values():
            same = other.entity_key == new.entity_key and other.text_hash == new.text_hash
            if same and other.valid_to is None and other.id != new.id:
                return other
        return None

    def _retracted_at(self, retraction: UUID | None) -> datetime | None:
        row = self.versions.get(retraction) if retraction else None
        if row is None or row.valid_from is None or row.valid_from <= moment(self.at):
            return None
        return row.valid_from

    def _let_follow(self, new: Version, closed_by: UUID | None) -> None:
        """Let a later fact that ends ``new`` ("left Acme") stand behind it in its chain, if it stands in none."""
        ender = self.versions.get(closed_by) if closed_by else None
        if ender is None or ender.kind == "retraction" or ender.supersedes is not None:
            return
        if new.valid_to is not None and new.valid_to == ender.valid_from and self._successor(new) is None:
            ender.supersedes = new.id
            self.changed.add(ender.id)

    def _said_later(self, version: Version) -> list[Said]:
        """Messages later than this one that say what ``version`` says, while it holds; the earliest first."""
        later = [
            said
            for said in version.said
            if said.at is not None
            and said.at > moment(self.at)
            and (version.valid_to is None or said.at < version.valid_to)
        ]
        return sorted(later, key=lambda said: (moment(said.at), str(said.event_id)))

    def _split(self, version: Version) -> Version | None:
        """Split off what was said again after this message as a version of its own, the successor of this one's place.

        None where nothing was said later. The caller ends ``version`` and links the rest.
        """
        later = self._said_later(version)
        if not later:
            return None
        earlier = [said for said in version.said if said not in later]
        rest = replace(
            version,
            id=uuid.uuid5(version.id, str(self.event_id)),
            said=list(later),
            source_event_id=later[0].event_id,
            valid_from=later[0].at,
            supersedes=None,
            confirmations=len(later) - 1,
            planned=None,
            copy_of=version.id,
        )
        rest.put(later[0].wording or version.wording())
        version.corrections = 0  # what followed on it follows on the rest now
        after = self._successor(version)
        if after is not None:
            after.supersedes = rest.id
            self.changed.add(after.id)
        if earlier and version.source_event_id not in {said.event_id for said in earlier}:
            version.source_event_id = earlier[0].event_id
        version.said = earlier
        version.confirmations = max(0, len(earlier) - 1)
        dated = [said.at for said in earlier if said.at is not None]
        version.last_confirmed_at = max(dated) if version.confirmations and dated else None
        self.dropped_said += [(version.id, said.event_id) for said in later]
        self.dropped_said.append((version.id, version.source_event_id))
        self.new_said += [Noted(rest.id, said, was=version.id) for said in rest.said[1:]]
        self.versions[rest.id] = rest
        self.changed.add(version.id)
        return rest

    def _end(self, version: Version, at: datetime) -> None:
        """End ``version`` at ``at`` in the world (never before it began); the system learns it now."""
        end = max(at, moment(version.valid_from))
        version.valid_to = end if version.valid_to is None else min(version.valid_to, end)
        version.invalidated_at = version.invalidated_at or self.now
        self.changed.add(version.id)

    @staticmethod
    def _same_words(one: Version, other: Version) -> bool:
        return one.text_hash == other.text_hash

    def _rephrase(self, target: Version, new: Version) -> None:
        """Let ``target`` have the words of the message that said it first, as if history had come in order.

        Not where they are no one's (a mirror fact's), are another entity's, or stand as an active fact already.
        """
        same = self._same_words(target, new) or new.entity_key != target.entity_key
        taken = target.valid_to is None and self._active_twin(new) is not None
        if same or taken or new.source_context is not None or not target.stored:
            return
        if any(said.at is None or said.at <= moment(self.at) for said in target.said):
            return
        target.put(new.wording())
        target.rephrased, target.source_event_id = True, self.event_id
        self.displaced += [Noted(target.id, said) for said in target.said if said.wording is not None]
        self.changed.add(target.id)

    def _close(self, new: Version, end: datetime | None) -> None:
        if end is not None:
            new.valid_to, new.invalidated_at = max(end, moment(new.valid_from)), self.now

    def _note(self, target: Version, new: Version) -> None:
        if target.event_date is None and new.event_date is not None:
            target.event_date, target.event_date_precision = new.event_date, new.event_date_precision
        if all(said.event_id != self.event_id for said in target.said):
            target.confirmations += 1
            own = self._same_words(target, new) or new.entity_key != target.entity_key
            said = Said(self.event_id, self.at, None if own else new.wording())
            target.said.append(said)
            if target.source_event_id != self.event_id:
                self.new_said.append(Noted(target.id, said))
        if self.at is not None and moment(target.last_confirmed_at) < self.at:
            target.last_confirmed_at = self.at
        self.changed.add(target.id)
