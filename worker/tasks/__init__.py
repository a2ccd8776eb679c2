"""Celery's side: each task is one line around a function of ``worker.turns``."""
