"""What a job is to the rest: how it is known to be due, how a step is planned, and how that is applied."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession
from worker.write.calls import Calls


@dataclass(frozen=True, slots=True)
class Step:
    """One bounded step, planned. ``apply`` stores it inside the caller's transaction and returns how many rows of the
    memory it changed. ``carried`` (plain data) is what the next step of the same run starts from."""

    apply: Callable[[Session], int]
    carried: Mapping[str, Any] = field(default_factory=dict)


class Job(Protocol):
    """A background job, known by its ``name``."""

    name: str

    @property
    def due(self) -> str:
        """An SQL condition over ``a.agent_id``: whether anything is due for that agent."""
        ...

    def plan(
        self,
        agent_id: str,
        carried: Mapping[str, Any],
        read: ReadSession,
        calls: Calls,
        config: MemoryConfig,
        *,
        fallback: str | None,
    ) -> Step | None:
        """The next step for ``agent_id``, None where nothing is due any more. At most one model call, made with no
        session open. ``fallback``: the cause for which this step has to do without the model. Raises ModelError."""
        ...

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:
        """What a run would work on now, one line an item, at most a hundred."""
        ...
