"""``promote_attributes``: a proposed attribute key that was seen often enough becomes active (behaviour: 10, 11).

The sighting that makes a key active does so itself; this catches those that a lowered
``attribute_activation_sightings`` makes ripe. No model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession
from worker.maintenance.job import Step
from worker.settings import settings
from worker.write.calls import Calls

KEYS_A_STEP = 500

NEXT = text("""
SELECT k.attribute_key FROM memory_attribute_registry k
 WHERE k.agent_id = :agent_id AND NOT k.is_active AND k.sightings >= :needed ORDER BY 1 LIMIT :many
""")
# Invariant: a key once active stays so.
PROMOTE = text("""
UPDATE memory_attribute_registry SET is_active = true
 WHERE agent_id = :agent_id AND attribute_key = ANY (CAST(:keys AS text[])) AND NOT is_active
""")


class PromoteAttributes:
    """See the module's docstring."""

    name = "promote_attributes"

    @property
    def due(self) -> str:
        """See Job; the number of sightings is the deployment's."""
        needed = int(settings().memory_config().attribute_activation_sightings)
        return (
            "EXISTS (SELECT FROM memory_attribute_registry k WHERE k.agent_id = a.agent_id AND NOT k.is_active"
            f" AND k.sightings >= {needed})"
        )

    def plan(
        self,
        agent_id: str,
        carried: Mapping[str, Any],  # noqa: ARG002
        read: ReadSession,
        calls: Calls,  # noqa: ARG002
        config: MemoryConfig,
        *,
        fallback: str | None,  # noqa: ARG002
    ) -> Step | None:
        """The next keys that are ripe."""
        with read() as session:
            keys = self._ripe(session, agent_id, config, KEYS_A_STEP)
        if not keys:
            return None
        given = {"agent_id": agent_id, "keys": keys}
        return Step(lambda session: int(session.execute(PROMOTE, given).rowcount))  # type: ignore[attr-defined]

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:
        """The keys that are ripe."""
        return self._ripe(session, agent_id, config, 100)

    @staticmethod
    def _ripe(session: Session, agent_id: str, config: MemoryConfig, many: int) -> list[str]:
        parameters = {"agent_id": agent_id, "needed": config.attribute_activation_sightings, "many": many}
        return list(session.execute(NEXT, parameters).scalars())
