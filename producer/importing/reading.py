"""From what a format finds to what is handed in: speakers, zones, ids and the messages before."""

from __future__ import annotations

import hashlib
from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from producer.contract import RequestError, WriteRequest, clean_text, is_blank
from producer.importing.detection import detect, format_named
from producer.importing.export import Export, Format
from producer.importing.options import CONTEXT_CHARS, MAX_TURN, Options, Speaker
from producer.importing.rows import Found, Notes, Role, Row, Skipped
from producer.importing.sources import opened
from producer.importing.times import Clock, bound

_LONGEST_ID = 400
# Formats whose conversations have no name but their file's: the same chat may come in another file the next time.
_NAMED_BY_FILE = frozenset({"whatsapp"})


def rows(path: Path, options: Options, notes: Notes, *, counted_only: bool = False) -> Generator[Row | Skipped]:
    """What an import of ``path`` finds, in the order of its files; ``notes`` is filled on the way.

    ``counted_only``: for a preview, which may not know yet whose memory an export is for.

    Flat in memory: nothing is kept but names, and 16 bytes a message that has no id of its own. Raises RequestError
    (UnreadableExport among them) and OSError.
    """
    with _recognised(path, options, notes) as (reader, export):
        if options.agent_id is None and reader.NAME not in ("jsonl", "csv"):
            if not counted_only:
                raise RequestError("an export does not say whose memory it is for; give an agent_id (--agent)")
            export.options = replace(options, agent_id="preview")
        settling = _Settling(reader.NAME, export)
        for entry in export.entries:
            for found in reader.read(entry, export):
                item = found if isinstance(found, Skipped) else settling.row(found)
                yield _placed(item, entry.name)


@contextmanager
def _recognised(path: Path, options: Options, notes: Notes) -> Iterator[tuple[Format, Export]]:
    wanted = format_named(options.format)
    clock = Clock.of(options.timezone, notes)
    with opened(path) as entries:
        reader, own, beside = detect(entries, path.name, wanted)
        notes.format, notes.side_files = reader.NAME, len(beside)
        title = path.name if path.is_dir() else path.stem
        yield reader, Export(title, own, beside, options, notes, clock)


def _placed(item: Row | Skipped, file: str) -> Row | Skipped:
    if isinstance(item, Row):
        return Row(item.line, item.content, item.request, file)
    return Skipped(item.line, item.reason, item.content, item.rejected, file)


@dataclass
class _Settling:
    """Everything that is the same for all formats."""

    format: str
    export: Export
    _names: dict[str, str] = field(default_factory=dict)  # speaker id -> the name it goes by
    _taken: dict[str, str] = field(default_factory=dict)  # name -> the speaker id that has it
    _seen: Counter[bytes] = field(default_factory=Counter)
    _session: str | None = None
    _said: deque[tuple[datetime | None, str]] = field(default_factory=deque)
    _overrides: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        options, clock = self.export.options, self.export.clock
        self._since = _limit(options.since, clock, end=False)
        self._until = _limit(options.until, clock, end=True)
        if options.batch is not None:
            self._overrides = {"bulk_batch": options.batch, "bulk_turn": min(options.batch, MAX_TURN)}
        self._said = deque(maxlen=options.context) if options.context > 0 else deque(maxlen=1)
        self._last: datetime | None = None

    def row(self, found: Found | Row) -> Row | Skipped:
        """The row of what was found, or why it is none."""
        if isinstance(found, Row):  # a row of ours: it says all itself
            return self._own_row(found)
        if is_blank(found.text):
            return Skipped(found.line, "is blank")
        said = self._speaker(found)
        if said is None:
            return Skipped(found.line, "speaker left out by the speaker map")
        name, role = said
        at = self._settled(found.at)
        if (why := self._outside(at if at is not None else "unknown")) is not None:
            return Skipped(found.line, why)
        content = self._content(found, at)
        try:
            request = WriteRequest.parse(
                agent_id=found.agent_id or self.export.options.agent_id,
                message=found.text,
                speaker_name=name,
                speaker_aliases=tuple(found.aliases),
                occurred_at=at if at is not None else "unknown",
                recent_messages=self._recent(found, name, at),
                source=f"import:{self.format}",
                session_id=_short(found.session),
                message_id=self._message_id(found),
                role=role,
                config_overrides=self._overrides,
            )
        except RequestError as error:
            return Skipped(found.line, str(error), content, rejected=True)
        return Row(found.line, content, request)

    def _own_row(self, row: Row) -> Row | Skipped:
        request = row.request
        said = self._mapped(request.speaker_name, None)
        if said is not None and said.left_out:
            return Skipped(row.line, "speaker left out by the speaker map")
        at = request.occurred_at if request.occurred_at is not None else datetime.now(UTC)
        if (why := self._outside(at)) is not None:
            return Skipped(row.line, why)
        changes: dict[str, object] = {}
        if request.message_id is None:
            parts = (request.speaker_name, str(request.occurred_at or ""), request.session_id or "", request.message)
            changes["message_id"] = self._made_id("import", request.agent_id, *parts)
        if self._overrides:
            changes["config_overrides"] = {**self._overrides, **request.config_overrides}
        if said is not None:
            changes |= {"speaker_name": said.name or request.speaker_name, "role": said.role or request.role}
        return Row(row.line, row.content, request.model_copy(update=changes) if changes else request)

    # Speakers

    def _mapped(self, name: str, speaker_id: str | None) -> Speaker | None:
        return self.export.mapped(speaker_id, name) if self.export.options.speakers else None

    def _speaker(self, found: Found) -> tuple[str, Role] | None:
        """Name and role; None for somebody who is left out."""
        mapped = self._mapped(found.speaker, found.speaker_id)
        if mapped is not None and mapped.left_out:
            return None
        name = mapped.name if mapped is not None and mapped.name else self._own_name(found)
        if found.aliases:
            self.export.notes.aliases.setdefault(name, set()).update(found.aliases)
        return name, (mapped.role if mapped is not None and mapped.role else found.role)

    def _own_name(self, found: Found) -> str:
        """The name of whoever has this id: the first one seen, told apart from another id's of the same name."""
        if found.speaker_id is None:
            return found.speaker
        name = self._names.get(found.speaker_id)
        if name is None:
            name = found.speaker
            if self._taken.setdefault(name, found.speaker_id) != found.speaker_id:
                self.export.notes.warn("two speakers have the same name; the second goes by name and id")
                name = f"{name} ({found.speaker_id})"
            self._names[found.speaker_id] = name
        return name

    # Times

    def _settled(self, at: datetime | None) -> datetime | None:
        if at is None:
            return None
        settled = self.export.clock.settle(at, self._last)
        self._last = settled
        return settled

    def _outside(self, at: datetime | str) -> str | None:
        """Why a message is not asked for; None where it is."""
        if self._since is None and self._until is None:
            return None
        if not isinstance(at, datetime):
            return "has no time, so --since and --until cannot tell"
        if self._since is not None and at < self._since:
            return "before --since"
        return "after --until" if self._until is not None and at > self._until else None

    # Ids and context

    def _message_id(self, found: Found) -> str:
        if found.message_id is not None:
            return _short(found.message_id) or found.message_id
        # The local time as the export has it: another --timezone makes no second message of it.
        at = "" if found.at is None else found.at.replace(tzinfo=None).isoformat()
        agent = found.agent_id or self.export.options.agent_id or ""
        session = "" if self.format in _NAMED_BY_FILE else found.session or ""
        return self._made_id(self.format, agent, found.speaker_id or found.speaker, at, session, found.text)

    def _made_id(self, prefix: str, agent_id: str, *parts: str) -> str:
        """An id from the content. Equal messages of one import are told apart by counting them."""
        digest = hashlib.sha256("\0".join(clean_text(part) for part in parts).encode()).hexdigest()[:32]
        key = hashlib.blake2b(f"{agent_id}\0{digest}".encode(), digest_size=16).digest()
        self._seen[key] += 1
        return f"{prefix}:{digest}:{self._seen[key]}"

    def _recent(self, found: Found, name: str, at: datetime | None) -> tuple[str, ...]:
        """The messages of the same conversation that were said before this one, as far as the file has them before it.

        Formats go conversation by conversation, so one conversation's are enough to keep.
        """
        if found.session != self._session:
            self._session = found.session
            self._said.clear()
        earlier = tuple(text for then, text in self._said if then is None or at is None or then <= at)
        self._said.append((at, f"{name}: {found.text[-CONTEXT_CHARS:]}"))
        return earlier if self.export.options.context > 0 and found.session is not None else ()

    def _content(self, found: Found, at: datetime | None) -> dict[str, object]:
        """What is kept of a message that is rejected: enough to hand it in as a JSON line once it is mended."""
        return {
            "message": found.text,
            "speaker_name": found.speaker,
            "occurred_at": at.isoformat() if at is not None else None,
            "session_id": found.session,
            "message_id": found.message_id,
            "role": found.role,
        }


def _limit(limit: str | datetime | None, clock: Clock, *, end: bool) -> datetime | None:
    if limit is None:
        return None
    if isinstance(limit, str):
        return bound(limit, clock, end=end)
    if limit.utcoffset() is None:
        raise RequestError("since and until need a time zone; write them like 2025-06-15T23:30:00-03:00")
    return limit


def _short(text: str | None) -> str | None:
    """``text``, or a digest of it where it is longer than an id may be."""
    if text is None or len(text) <= _LONGEST_ID:
        return text
    return text[:60] + hashlib.sha256(clean_text(text).encode()).hexdigest()[:32]
