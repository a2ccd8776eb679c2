"""Outside calls of a stage: every model call and every embedding goes through here.

One Calls object lives as long as one run of one stage. It counts tokens, embeds each text once over all stages of a
message, and reuses a reply that was stored before a crash, so that a retry asks only for what is missing.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel, Field

from worker.embedding.provider import EmbeddingProvider, Vectors
from worker.llm.prompts import prompt, version_of
from worker.llm.provider import Cause, Completion, LLMProvider, ModelError
from worker.llm.schemas import schema_of
from worker.write.tokens import SentPrompt
from worker.write.told import ToldCalls

T = TypeVar("T")

# A reason that is a code. Whatever else might stand there is a text, and no text may become the label of a metric.
_CODE = re.compile(r"[a-zA-Z0-9_]{1,64}")


class CallUsage(BaseModel):
    """What the calls of a run have cost so far.

    Each reply that came in is counted once. ``wasted_*`` is what was paid beside that, for calls whose reply was lost
    with its worker: as much as the same call cost when it was answered, since nobody knows better. ``cost_usd`` is what
    was paid, so both.
    ``prompts`` says which version of its prompt each task was asked with, and a hash of the deployment's instructions;
    a run keeps it, so that results can be traced to a prompt. ``waits`` (by cause), ``repairs`` (by kind) and
    ``rejects`` (by reason) are counted here as well, because a run keeps its usage, and metrics are made of what runs
    keep.
    """

    calls: int = 0
    embedding_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    wasted_input_tokens: int = 0
    wasted_output_tokens: int = 0
    cost_usd: float | None = None
    unpriced: bool = False
    by_task: dict[str, int] = Field(default_factory=dict)
    prompts: dict[str, str] = Field(default_factory=dict)
    waits: dict[str, int] = Field(default_factory=dict)
    repairs: dict[str, int] = Field(default_factory=dict)
    rejects: dict[str, int] = Field(default_factory=dict)

    def note_wait(self, cause: str) -> None:
        """Count that the run was given back and waits."""
        self.waits[cause] = self.waits.get(cause, 0) + 1

    def note_reading(self, repairs: Mapping[str, int], rejected: Iterable[str]) -> None:
        """Count how the replies were read: ``repairs`` by kind, the coded reasons of ``rejected`` items."""
        self.repairs = dict(repairs)
        self.rejects = dict(Counter(reason if _CODE.fullmatch(reason) else "other" for reason in rejected))

    def add(self, task: str, completion: Completion, *, lost: int = 0, calls: int = 1) -> None:
        """Count one answered call; ``lost``: so many earlier sendings of it were lost with their workers.

        ``calls=0`` for a part of a call that another run counts: only the part's tokens and cost are added.
        """
        usage = completion.usage
        self.calls += calls
        if calls:
            self.by_task[task] = self.by_task.get(task, 0) + calls
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        if usage.cost_usd is None:
            self.unpriced = True
        else:
            self.cost_usd = (self.cost_usd or 0.0) + usage.cost_usd * (1 + lost)
        self.wasted_input_tokens += usage.input_tokens * lost
        self.wasted_output_tokens += usage.output_tokens * lost

    def take(self, other: CallUsage) -> None:
        """Add the calls, tokens and cost that ``other`` has counted."""
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.unpriced |= other.unpriced
        if other.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + other.cost_usd
        self.by_task = dict(Counter(self.by_task) + Counter(other.by_task))
        self.prompts |= other.prompts

    def waste(self, calls: int) -> None:
        """Count lost calls that were never asked again, each as much as this run's calls cost on average."""
        if calls and self.calls:
            share = calls / self.calls
            self.wasted_input_tokens += round(self.input_tokens * share)
            self.wasted_output_tokens += round(self.output_tokens * share)
            if self.cost_usd is not None:
                self.cost_usd *= 1 + share


@dataclass(frozen=True, slots=True)
class KeptReply:
    """A reply of an earlier try. ``counted``: the run's usage has it already; else ``lost`` as in CallUsage.add."""

    completion: Completion
    counted: bool = True
    lost: int = 0


class ReplyLedger(Protocol):
    """Where replies are kept between tries of a stage. In-process nothing is kept."""

    def announce(self, key: str, model: str) -> int:
        """Note that the call ``key`` is about to be sent to ``model`` (and renew the lease). Returns how many earlier
        sendings of it were lost. Raises ModelError where that model is not to be called now."""
        ...

    def unanswered(self, key: str, lost: int) -> None:
        """Note that this sending of the call failed, so that it does not make good the ``lost`` ones before."""
        ...

    def stored(self, key: str) -> KeptReply | None:
        """The reply of an earlier try, or None."""
        ...

    def store(self, key: str, completion: Completion, usage: CallUsage, lost: int) -> None:
        """Keep a reply of a stage that makes several calls; ``lost`` as ``announce`` returned it."""
        ...


class NoLedger:
    """The in-process ledger: a notebook's run has no second try after a crash."""

    def announce(self, key: str, model: str) -> int:  # noqa: ARG002
        """Nothing was ever sent before."""
        return 0

    def unanswered(self, key: str, lost: int) -> None:
        """Note nothing."""

    def stored(self, key: str) -> KeptReply | None:  # noqa: ARG002
        """Nothing is kept."""
        return None

    def store(self, key: str, completion: Completion, usage: CallUsage, lost: int) -> None:
        """Keep nothing."""


class VectorCache:
    """The vectors of a message's texts, each embedded once over all stages."""

    def __init__(self, texts: Sequence[str] = (), matrix: Vectors | None = None) -> None:
        self._rows: dict[str, Vectors] = {}
        if matrix is not None:
            self._rows = dict(zip(texts, matrix, strict=True))

    def __contains__(self, text: str) -> bool:
        return text in self._rows

    def __getitem__(self, text: str) -> Vectors:
        return self._rows[text]

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, texts: Sequence[str], matrix: Vectors) -> None:
        """Remember one row for each text."""
        self._rows.update(zip(texts, matrix, strict=True))

    def get(self, text: str) -> Vectors | None:
        """The vector of ``text``, or None where it was never embedded."""
        return self._rows.get(text)

    def take(self, other: VectorCache) -> None:
        """Remember what ``other`` does."""
        self._rows |= other._rows

    @classmethod
    def of(cls, known: VectorCache, texts: Iterable[str]) -> VectorCache:
        """The part of ``known`` that ``texts`` need. Raises KeyError for one that was never embedded."""
        part = cls()
        part._rows = {text: known[text] for text in texts}
        return part

    def dump(self) -> tuple[list[str], bytes]:
        """Texts and their vectors as little-endian float32, row by row."""
        if not self._rows:
            return [], b""
        return list(self._rows), np.stack(list(self._rows.values())).astype("<f4").tobytes()

    @classmethod
    def load(cls, texts: Sequence[str], blob: bytes) -> VectorCache:
        """The inverse of ``dump``."""
        if not texts:
            return cls()
        return cls(texts, np.frombuffer(blob, dtype="<f4").reshape(len(texts), -1).astype(np.float32))


class EmbeddingError(ModelError):
    """The embedding provider failed. Transient causes wait like others; for the rest a stage does without vectors."""

    @property
    def transient(self) -> bool:
        """Whether waiting helps; if not, the caller goes on without vectors and says so in its degradations."""
        return self.cause in (Cause.RATE_LIMITED, Cause.PROVIDER_ERROR, Cause.MODEL_UNAVAILABLE)


class Calls:
    """The outside calls of one stage. Thread-safe: a stage may make several calls at the same time."""

    def __init__(
        self,
        llm: LLMProvider,
        embeddings: EmbeddingProvider,
        *,
        timeout: float = 30.0,
        ledger: ReplyLedger | None = None,
        vectors: VectorCache | None = None,
        usage: CallUsage | None = None,
        told: ToldCalls | None = None,
    ) -> None:
        self._llm = llm
        self._embeddings = embeddings
        self._ledger = ledger or NoLedger()
        self._lock = threading.Lock()
        self.timeout = timeout
        self.vectors = vectors or VectorCache()
        self.usage = usage or CallUsage()
        self._told = told  # None: nobody will ask
        self.prompts: list[SentPrompt] | None = None  # set to [] to keep what is sent, for a dry run's trace
        self.without_embeddings = False  # set where nothing can wait (in-process) and the embeddings do not answer

    def ask(
        self,
        task: str,
        payload: Mapping[str, Any],
        parse: Callable[[Completion], T],
        *,
        instructions: str = "",
        max_tokens: int | None = None,
    ) -> T:
        """One model call for ``task``, parsed by ``parse``.

        ``instructions`` are the deployer's own, set at a fixed place behind the prompt. ``max_tokens`` allows the reply
        more than the provider's own limit. A reply that ``parse`` refuses is counted (it was paid) and not kept.
        Raises ModelError.
        """
        text = prompt(task).text
        system = text + (f"\n\nInstructions of this deployment:\n{instructions}" if instructions else "")
        with self._lock:
            self.usage.prompts[task] = version_of(task, instructions)
            if self.prompts is not None:
                self.prompts.append(SentPrompt(task, text, instructions, payload))
        larger = {} if max_tokens is None else {"max_tokens": max_tokens}
        if larger and not _takes_max_tokens(self._llm):
            raise ModelError(Cause.INVALID_REQUEST, "no_max_tokens")
        key = call_key(task, system, payload if max_tokens is None else {**payload, "max_tokens": max_tokens})
        kept = self._ledger.stored(key)
        if kept is not None:
            if not kept.counted:  # its worker died before it could say what it had cost
                with self._lock:
                    self.usage.add(task, kept.completion, lost=kept.lost)
            return self._parsed(task, payload, kept.completion, parse, kept=True)
        model = model_of(self._llm, task)
        lost = self._ledger.announce(key, model)
        begun = time.perf_counter()
        try:
            completion = self._llm.complete(
                task, system, payload, schema=schema_of(task, payload), timeout=self.timeout, **larger
            )
        except ModelError as error:
            error.model = model
            self._tell(task, payload, begun, error=error)
            self._ledger.unanswered(key, lost)
            raise
        with self._lock:
            self.usage.add(task, completion, lost=lost)
        parsed = self._parsed(task, payload, completion, parse, begun)
        self._ledger.store(key, completion, self.usage, lost)
        return parsed

    def _parsed(
        self,
        task: str,
        payload: Mapping[str, Any],
        completion: Completion,
        parse: Callable[[Completion], T],
        begun: float | None = None,
        *,
        kept: bool = False,
    ) -> T:
        try:
            parsed = parse(completion)
        except ModelError as error:
            self._tell(task, payload, begun, completion, error, kept=kept)
            raise
        self._tell(task, payload, begun, completion, kept=kept)
        return parsed

    def _tell(
        self,
        task: str,
        payload: Mapping[str, Any],
        begun: float | None,
        completion: Completion | None = None,
        error: ModelError | None = None,
        *,
        kept: bool = False,
    ) -> None:
        """Note the call for a trace."""
        if self._told is None:
            return
        usage = completion.usage if completion else None
        self._told.note(
            task, self.usage.prompts[task], payload, reply=completion.text if completion else None,
            error=(error.cause.value, str(error)) if error else None, kept=kept,
            ms=0.0 if begun is None else (time.perf_counter() - begun) * 1000,
            tokens=(usage.input_tokens, usage.output_tokens) if usage else (0, 0),
        )  # fmt: skip

    def embed(self, texts: Sequence[str]) -> VectorCache:
        """The vectors of ``texts`` (and of all texts embedded before), asking only for those that are missing.

        Raises EmbeddingError. A stage lets a transient one pass (the run waits) and does without vectors otherwise.
        """
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if missing:
            if self.without_embeddings:
                raise EmbeddingError(Cause.TIMEOUT, "embeddings are given up for this run")
            try:
                matrix = self._embeddings.embed(missing, timeout=self.timeout)
            except ModelError as error:
                raise EmbeddingError(error.cause, error.detail, retry_after=error.retry_after) from None
            if matrix.shape != (len(missing), self._embeddings.dimensions):
                raise EmbeddingError(Cause.PROVIDER_ERROR, f"vectors of shape {matrix.shape}")
            with self._lock:
                self.usage.embedding_calls += 1
                self.vectors.add(missing, matrix)
        return self.vectors


def _takes_max_tokens(llm: LLMProvider) -> bool:
    # A provider from outside may know no such bound: then a longer reply is nothing that it can be asked for.
    parameters = inspect.signature(llm.complete).parameters.values()
    return any(item.name == "max_tokens" or item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters)


def model_of(llm: LLMProvider, task: str) -> str:
    """The name of the model that ``llm`` asks for ``task``; a provider that names none is one model."""
    named = getattr(llm, "model_for", None)
    return str(named(task)) if named is not None else type(llm).__name__


def call_key(task: str, system: str, payload: Mapping[str, Any]) -> str:
    """The key under which the reply to a call is kept: the same for the same question, and for no other."""
    content = json.dumps([task, system, payload], ensure_ascii=False, sort_keys=True, default=str)
    return f"{task}:{hashlib.blake2b(content.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"
