"""What can be said about an import, and who is who in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from producer.contract import RequestError, is_blank
from producer.importing.rows import Role
from producer.importing.times import ORDERS, DateOrder

# How many of the messages before it a message is handed in with, and how much of each: enough for "yes, both".
CONTEXT_MESSAGES = 4
CONTEXT_CHARS = 500

MAX_BATCH, MAX_TURN = 16, 8  # messages; as MemoryConfig allows them


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who a speaker of an export is: a name, a role, or nobody (``left_out``). None: as the export says."""

    name: str | None = None
    role: Role | None = None
    left_out: bool = False


@dataclass(frozen=True)
class Options:
    """How an export is to be read.

    ``agent_id``: whose memory it goes to (JSON lines and CSV may name one a row). ``format``: a name, or ``auto``.
    ``speaker``: the name of whoever an export leaves nameless. ``speakers``: names, or ids of the platform, to who they
    are (``load_speakers``). ``timezone``: of times without one. ``date_order``: of dates in numbers. ``since`` and
    ``until``: dates or times, both included. ``context``: how many earlier messages of the same conversation go along
    with each as its recent messages. ``batch``: how many neighbours of a conversation may share an extraction call,
    1 to 16, and, up to 8, consecutive messages a turn; 1 is one by one (None: as the workers are configured).
    """

    agent_id: str | None = None
    format: str = "auto"
    speaker: str | None = None
    speakers: Mapping[str, Speaker] = field(default_factory=dict)
    timezone: str | None = None
    date_order: DateOrder | None = None
    since: str | datetime | None = None
    until: str | datetime | None = None
    context: int = CONTEXT_MESSAGES
    batch: int | None = None

    def __post_init__(self) -> None:
        if self.agent_id is not None and is_blank(self.agent_id):
            raise RequestError("agent_id is blank; say whose memory this is")
        if self.batch is not None and not 1 <= self.batch <= MAX_BATCH:
            raise RequestError(f"a batch has 1 to {MAX_BATCH} messages, not {self.batch}")
        if self.date_order is not None and self.date_order not in ORDERS:
            raise RequestError(f"{self.date_order!r} is no order of dates; write DMY, MDY or YMD")

    def dump(self) -> dict[str, Any]:
        """As plain data, from which ``load`` makes the same options."""
        plain = asdict(self)
        for name in ("since", "until"):
            if isinstance(plain[name], datetime):
                plain[name] = plain[name].isoformat()
        return plain

    @classmethod
    def load(cls, plain: Mapping[str, Any]) -> Options:
        """The options that ``dump`` made ``plain`` of."""
        speakers = {name: Speaker(**said) for name, said in plain["speakers"].items()}
        return cls(**{**plain, "speakers": speakers})


def load_speakers(path: Path) -> dict[str, Speaker]:
    """The speaker map of a JSON file. Raises RequestError that shows how it is written, OSError.

    ``{"+55 11 9…": "Rita Souza", "U07BOT": {"name": "Helper", "role": "assistant"}, "Spam": null}``: a name or an id of
    the platform, to a name, to both name and role, or to null for whoever is to be left out. The plain name
    ``assistant`` makes an assistant.
    """
    try:
        given = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{path.name}: is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise RequestError(f'{path.name}: is no JSON object; write it like {{"+55 11 9…": "Rita Souza"}}')
    return {name: _speaker(path.name, name, value) for name, value in given.items()}


def _speaker(file: str, name: str, value: Any) -> Speaker:
    if value is None:
        return Speaker(left_out=True)
    if isinstance(value, str) and not is_blank(value):
        return Speaker(name=value.strip(), role="assistant" if value.strip().casefold() == "assistant" else None)
    if isinstance(value, dict) and set(value) <= {"name", "role"}:
        called, role = value.get("name"), value.get("role")
        named = called is None or (isinstance(called, str) and not is_blank(called))
        if named and role in (None, "user", "assistant"):
            return Speaker(name=called.strip() if called else None, role=role)
    raise RequestError(
        f'{file}: {name!r}: give a name, null, or {{"name": …, "role": "user" or "assistant"}}'
    )
