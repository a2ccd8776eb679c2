"""Entity resolution: whom each extracted name means (behaviour: 6)."""

from worker.write.resolution.stage import resolve

__all__ = ["resolve"]
