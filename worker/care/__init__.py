"""What an owner does with a memory: forget something of it, take it along, put it back (behaviour: 12).

These need the database's owner: workers can neither change nor erase an event.
"""

from worker.care.export import export
from worker.care.forget import Receipt, forget
from worker.care.restore import restore

__all__ = ["Receipt", "export", "forget", "restore"]
