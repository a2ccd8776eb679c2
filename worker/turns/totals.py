"""Folding: finished runs are added to totals that outlive them, some minutes after they finished."""

from __future__ import annotations

from worker.db import engine, sql
from worker.read.totals import SUMS

# Invariant: one folds at a time; a second one finds the row locked and leaves.
LOCK_MARK = "SELECT at FROM ledger_marks WHERE name = 'folded' FOR NO KEY UPDATE SKIP LOCKED"

# Invariant: finished_at is when the transaction began that finished the run, and such a transaction takes milliseconds
# (each of its statements ends after 30 s). So after two minutes nothing appears any more before what is folded here;
# a run that did would be missing in counters, nowhere else.
FOLD_UNTIL = """
SELECT max(finished_at) FROM (
  SELECT r.finished_at FROM runs r
   WHERE r.finished_at > :after AND r.finished_at <= mandua_now() - interval '2 minutes'
   ORDER BY r.finished_at LIMIT :many) t
"""
FOLD = f"""
INSERT INTO run_totals AS t (day, metric, label, detail, value)
{SUMS.format(after=":after", until=":until")}
ON CONFLICT (day, metric, label, detail) DO UPDATE SET value = t.value + excluded.value
"""
MOVE_MARK = "UPDATE ledger_marks SET at = :until WHERE name = 'folded'"


def fold(many: int = 20_000) -> bool:
    """Fold the next ``many`` finished runs, or so; True if there were any. Sums and mark move in one commit."""
    with engine().begin() as connection:
        after = connection.execute(sql(LOCK_MARK)).scalar()
        if after is None:
            return False
        until = connection.execute(sql(FOLD_UNTIL), {"after": after, "many": many}).scalar()
        if until is None:
            return False
        connection.execute(sql(FOLD), {"after": after, "until": until})
        connection.execute(sql(MOVE_MARK), {"until": until})
        return True
