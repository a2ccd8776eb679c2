"""A measured figure, what it should reach, and how figures are shown and compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. ``at_most`` and ``at_least`` say what it should reach; neither: it is told for orientation."""

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether it reaches what it should; None where nothing is asked of it."""
        if self.at_most is None and self.at_least is None:
            return None
        above = self.at_least is None or self.value >= self.at_least
        return above and (self.at_most is None or self.value <= self.at_most)

    def as_json(self) -> dict[str, Any]:
        """Its fields and ``holds``."""
        return {**asdict(self), "holds": self.holds}

    def as_row(self) -> dict[str, Any]:
        """Its line in the table."""
        reach = f"<= {self.at_most:g}" if self.at_most is not None else ""
        reach = f">= {self.at_least:g}" if self.at_least is not None else reach
        verdict = {True: "yes", False: "NO", None: ""}[self.holds]
        return {"figure": self.name, "value": f"{self.value:,.3g}" if self.value < 1000 else f"{self.value:,.0f}",
                "unit": self.unit, "reach": reach, "holds": verdict, "note": self.note}  # fmt: skip


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie (nearest rank); 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def with_earlier(figures: Iterable[Figure], path: Path) -> list[dict[str, Any]]:
    """Rows of the table with the value of an earlier run (its ``--json``) beside each. Raises OSError, ValueError."""
    earlier = {row["name"]: row["value"] for row in json.loads(path.read_text(encoding="utf-8"))["figures"]}
    rows = []
    for figure in figures:
        before = earlier.get(figure.name)
        change = "" if not before else f"{figure.value / before - 1:+.0%}"
        rows.append({**figure.as_row(), "earlier": "" if before is None else f"{before:,.3g}", "change": change})
    return rows
