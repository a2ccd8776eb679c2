"""Everything that crosses the queue or comes back from it.

Producers build a WriteRequest, workers answer with a WriteResult. Both are plain data with their rules inside, so bad
input is refused here, at the door, with one line that says what to do.
"""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    field_validator,
    model_validator,
)

MAX_MESSAGE_CHARS = 200_000
MAX_NAME_CHARS = 256
MAX_SPEAKER_ALIASES = 10
MAX_RECENT_MESSAGES = 50
MAX_RECENT_CHARS = 20_000
UNKNOWN_TIME: Literal["unknown"] = "unknown"

# A worker's own output fed back as chat would feed on itself for ever.
OWN_SOURCE = "memory-worker"

# Never change it: event ids of messages that carry a platform's own id are derived from it.
_EVENT_NAMESPACE = uuid.UUID("6a5d4c1e-6f2b-4b1c-9a55-2f8f6f0f9d3e")

# Zero-width characters, joiners, byte order mark, soft hyphen: invisible, so blank.
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class RequestError(ValueError):
    """A request that cannot be accepted; ``str()`` is one line that says what to do. Nothing was stored or sent."""


class ConflictError(RequestError):
    """A message_id that this agent has already used for another text."""


def clean_text(text: str) -> str:
    """``text`` without what Postgres cannot store: NUL bytes and lone surrogates (a surrogate pair is joined)."""
    if not _UNSTORABLE.search(text):
        return text
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "ignore")
    return _UNSTORABLE.sub("", joined)


def is_blank(text: str) -> bool:
    """Whether nothing is left of ``text`` once white space and zero-width characters are gone."""
    return not _INVISIBLE.sub("", text).strip()


def event_id_for(agent_id: str, message_id: str | None) -> uuid.UUID:
    """The id of the event of a message: derived where the platform gives a message_id, else made once, here."""
    if message_id is None:
        return uuid.uuid4()
    return uuid.uuid5(_EVENT_NAMESPACE, f"{len(agent_id)}:{agent_id}:{message_id}")


def _parse_time(value: object) -> object:
    """A datetime from ISO text; refuses what has no zone, because "yesterday" would depend on who reads it."""
    if value is None or value == UNKNOWN_TIME:
        return value
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise ValueError("is not an ISO 8601 time; write it like 2025-06-15T23:30:00-03:00") from None
    if not isinstance(value, datetime):
        raise ValueError("is not a time; write it like 2025-06-15T23:30:00-03:00")  # noqa: TRY004 (pydantic)
    if value.utcoffset() is None:
        raise ValueError("has no time zone; write it like 2025-06-15T23:30:00-03:00 or 2025-06-16T02:30:00Z")
    return value


def _clean_values(value: Any) -> Any:
    """``value`` (plain data) with every text in it cleaned."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [_clean_values(item) for item in value]
    if isinstance(value, dict):
        return {_clean_values(key): _clean_values(item) for key, item in value.items()}
    return value


Time = Annotated[datetime | Literal["unknown"] | None, BeforeValidator(_parse_time)]
_Clean = Annotated[str, BeforeValidator(lambda v: clean_text(v) if isinstance(v, str) else v)]


class MemoryConfig(BaseModel):
    """What can be tuned, by configuration and per write (``config_overrides``). behaviour: 13."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    extraction_timeout_sec: Annotated[float, Field(gt=0)] = 30.0
    enable_informed_extraction: bool = True
    informed_extraction_topk: Annotated[int, Field(ge=0)] = 10
    informed_extraction_context_budget_tokens: Annotated[int, Field(ge=0)] = 800
    fuzzy_threshold: Annotated[float, Field(ge=0, le=1)] = 0.85
    fuzzy_floor: Annotated[float, Field(ge=0, le=1)] = 0.50
    enable_llm_resolution: bool = True
    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.55
    semantic_dedup_threshold: Annotated[float, Field(ge=0, le=1)] = 0.85
    reconcile_similarity_floor: Annotated[float, Field(ge=0, le=1)] = 0.50
    reconcile_candidates: Annotated[int, Field(ge=1)] = 5
    # In the bulk lane: how many neighbours share an extraction call, how many consecutive ones a turn. 8 as measured by
    # `mandua bench --only bulk`: an eighth of the model calls, half of the tokens, and the same memory.
    bulk_batch: Annotated[int, Field(ge=1, le=16)] = 8
    bulk_turn: Annotated[int, Field(ge=1, le=8)] = 8
    relationship_terms: Literal["person", "speaker"] = "person"
    extraction_instructions: str = ""
    entity_types: tuple[str, ...] = ()
    extra_pronouns: tuple[str, ...] = ()
    nicknames: Mapping[str, str] = Field(default_factory=dict)
    rel_type_aliases: Mapping[str, str] = Field(default_factory=dict)
    extra_attribute_keys: tuple[str, ...] = ()
    attribute_aliases: Mapping[str, str] = Field(default_factory=dict)
    extra_namespaces: tuple[str, ...] = ()
    attribute_activation_sightings: Annotated[int, Field(ge=1)] = 3

    def overridden(self, overrides: Mapping[str, Any]) -> MemoryConfig:
        """A copy with the given fields changed.

        An unknown key warns and is ignored. Raises ValueError for a wrong type: an int is fine for a float, a bool is
        not a number, null is not fine (behaviour: 9).
        """
        known: dict[str, Any] = {}
        for key, value in overrides.items():
            if key in MemoryConfig.model_fields:
                known[key] = tuple(value) if isinstance(value, list) else value
            else:
                warnings.warn(f"config_overrides: unknown key {key!r} is ignored", UserWarning, stacklevel=2)
        try:
            return MemoryConfig.model_validate({**self.model_dump(), **known})
        except ValidationError as error:
            raise ValueError(one_line(error, "config_overrides: ")) from None


class WriteRequest(BaseModel):
    """One message to be remembered, as a producer hands it in (behaviour: 0 and 1).

    ``occurred_at``: a time with zone; None means now; ``"unknown"`` says that nobody knows (an import without dates).
    ``speaker_aliases``: what else the speaker goes by, such as a nickname of the platform; learnt, never taken for a
    proof of who speaks. ``role`` is ``user`` or ``assistant`` where the backend knows it; assistant text is context, no
    source of facts.
    Raises RequestError through ``parse``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=False)

    agent_id: _Clean
    message: _Clean
    speaker_name: _Clean
    speaker_aliases: tuple[_Clean, ...] = ()
    occurred_at: Time = None
    recent_messages: tuple[_Clean, ...] = ()
    source: _Clean = "api"
    session_id: _Clean | None = None
    message_id: _Clean | None = None
    role: Literal["user", "assistant", "system"] = "user"
    config_overrides: Annotated[dict[str, Any], BeforeValidator(_clean_values)] = Field(default_factory=dict)
    verbose: bool = False
    dry_run: bool = False

    @classmethod
    def parse(cls, **fields: Any) -> WriteRequest:
        """A request from loose fields (a JSON row). Raises RequestError in one line that names field and remedy."""
        fields = {name: value for name, value in fields.items() if value is not None or name == "message"}
        try:
            return cls.model_validate(fields)
        except ValidationError as error:
            raise RequestError(one_line(error)) from None

    @field_validator("agent_id", "speaker_name")
    @classmethod
    def _named(cls, value: str) -> str:
        if is_blank(value):
            raise ValueError("is blank; say whose memory this is and who speaks")
        if len(value) > MAX_NAME_CHARS:
            raise ValueError(f"is {len(value)} characters long; at most {MAX_NAME_CHARS} fit")
        return value.strip()

    @field_validator("speaker_aliases")
    @classmethod
    def _also_called(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        named = (name.strip() for name in value if not is_blank(name) and len(name) <= MAX_NAME_CHARS)
        return tuple(dict.fromkeys(named))[:MAX_SPEAKER_ALIASES]

    @field_validator("message_id", "session_id", "source")
    @classmethod
    def _short(cls, value: str | None) -> str | None:
        if value is not None and len(value) > 2 * MAX_NAME_CHARS:
            raise ValueError(f"is {len(value)} characters long; at most {2 * MAX_NAME_CHARS} fit")
        if value is not None and is_blank(value):
            raise ValueError("is blank; leave it out instead")
        return value

    @field_validator("message")
    @classmethod
    def _fits(cls, value: str) -> str:
        if len(value) > MAX_MESSAGE_CHARS:
            raise ValueError(
                f"is {len(value)} characters long; at most {MAX_MESSAGE_CHARS} fit in one message, so send it in parts"
            )
        return value

    @field_validator("recent_messages", mode="before")
    @classmethod
    def _recent(cls, value: object) -> object:
        if isinstance(value, (list, tuple)):
            if any(not isinstance(item, str) for item in value):
                raise ValueError("holds something other than texts; give the last messages as a list of texts")
            return tuple(item[-MAX_RECENT_CHARS:] for item in value[-MAX_RECENT_MESSAGES:])
        return value

    @model_validator(mode="after")
    def _acceptable(self) -> WriteRequest:
        if self.source == OWN_SOURCE:
            raise ValueError(f"source {OWN_SOURCE!r} is the worker's own output; it is not fed back into the memory")
        if self.config_overrides:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the run itself warns; here only wrong types matter
                MemoryConfig().overridden(self.config_overrides)
        return self

    @property
    def blank(self) -> bool:
        """Whether there is nothing to remember: no event, no model call, no tokens."""
        return is_blank(self.message)

    def timed(self, now: datetime | None = None) -> WriteRequest:
        """The same request with "now" made a time, so that a message keeps the moment at which it was handed in."""
        if self.occurred_at is not None:
            return self
        return self.model_copy(update={"occurred_at": now or datetime.now(UTC)})


def one_line(error: ValidationError, prefix: str = "") -> str:
    """What a person needs from a pydantic error: each field and its remedy, without the input."""
    parts = []
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(str(part) for part in item["loc"] if not str(part).startswith("function-"))
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "missing":
            message = "is missing"
        elif item["type"] == "extra_forbidden":
            message = "is not a field of a message"
        part = f"{where} {message}".strip()
        if part not in parts:
            parts.append(part)
    return prefix + "; ".join(parts[:5])


class TokenUsage(BaseModel):
    """Tokens of all model calls of a message. A provider that reports none counts as zero."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class FactResult(BaseModel):
    """A fact as a write left it. ``replaced_*`` are set in ``facts_updated``. ids are None in a dry run."""

    id: uuid.UUID | None = None
    entity_key: str | None = None
    subject: str | None = None
    fact_text: str
    confidence: float
    importance: float | None = None
    kind: str = "fact"
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    event_date: str | None = None
    source_context: str | None = None
    reason: str | None = None
    replaced_id: uuid.UUID | None = None
    replaced_text: str | None = None


class EntityResult(BaseModel):
    """How a name was resolved (behaviour: 6)."""

    name: str
    key: str
    method: str
    is_new: bool
    score: float | None = None
    why: str | None = None


class RelationResult(BaseModel):
    """An edge that the message asserted."""

    source: str
    target: str
    rel_type: str
    strength: float | None = None
    evidence_fact_id: uuid.UUID | None = None


class EmotionResult(BaseModel):
    """What the message sounded like (behaviour: 2)."""

    primary: str = "neutral"
    intensity: float = 0.0
    energy_level: str = "medium"


class Degradation(BaseModel):
    """Something fell back: at which stage, to what, because of which cause."""

    stage: str
    fell_back_to: str
    cause: str


class Rejected(BaseModel):
    """An item of the reply that was not stored, and why. ``item`` never leaves the database and the caller."""

    stage: str
    kind: str
    reason: str
    item: str | None = None


class TraceStep(BaseModel):
    """One step of a PipelineTrace; duration in milliseconds."""

    name: str
    data: dict[str, Any] = Field(default_factory=dict)
    duration_ms: float = 0.0


class PipelineTrace(BaseModel):
    """What each step saw and did: extraction, semantic_dedup, entity_resolution, reconciliation, upsert, in order."""

    steps: list[TraceStep] = Field(default_factory=list)

    def step(self, name: str, duration_ms: float = 0.0, **data: Any) -> None:
        """Append a step."""
        self.steps.append(TraceStep(name=name, data=data, duration_ms=duration_ms))


Status = Literal["ok", "degraded", "empty", "failed", "duplicate"]


class WriteResult(BaseModel):
    """What became of a message (behaviour: 9). ``success`` is true for all but ``failed``."""

    event_id: uuid.UUID | None = None
    status: Status
    success: bool = True
    error: str | None = None
    facts_added: list[FactResult] = Field(default_factory=list)
    facts_updated: list[FactResult] = Field(default_factory=list)
    facts_unchanged: list[FactResult] = Field(default_factory=list)
    facts_deleted: list[FactResult] = Field(default_factory=list)
    entities_resolved: list[EntityResult] = Field(default_factory=list)
    relations: list[RelationResult] = Field(default_factory=list)
    emotion: EmotionResult | None = None
    degradations: list[Degradation] = Field(default_factory=list)
    rejected: list[Rejected] = Field(default_factory=list)
    repairs: dict[str, int] = Field(default_factory=dict)
    tokens_used: TokenUsage = Field(default_factory=TokenUsage)
    wasted: TokenUsage = Field(default_factory=TokenUsage)
    cost_usd: float | None = None
    duration_ms: float = 0.0
    pipeline: PipelineTrace | None = None


class RecordEnvelope(BaseModel):
    """What ``record_event`` carries over the queue: the request, its id, its lane. Never shown, never logged."""

    event_id: uuid.UUID
    lane: int
    request: WriteRequest


ENVELOPE = TypeAdapter(RecordEnvelope)
