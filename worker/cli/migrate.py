"""``migrate``: bring the database to what this code needs."""

from __future__ import annotations

from worker.cli import console
from worker.cli.serving import DataDir, bring_up_to_date, check_addresses


def migrate(data_dir: DataDir = None) -> None:
    """Bring the database up to date.

    The configured one, else the embedded one.
    """
    from worker import schema
    from worker.local.stack import ensure_stack

    check_addresses()
    with ensure_stack(data_dir, need_broker=False) as stack:
        bring_up_to_date(stack.database_url)
    console.say(f"the database is at revision {schema.head()}")
