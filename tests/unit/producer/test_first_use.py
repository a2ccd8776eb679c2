"""The first client of a process, made by many threads at once, as a web server does."""

from __future__ import annotations

import subprocess
import sys

MANY = """
import sys, threading
sys.setswitchinterval(1e-5)
from producer import MemoryClient
start, failed = threading.Barrier(8), []
def make():
    start.wait()
    try:
        MemoryClient("redis://127.0.0.1:1/0")
    except BaseException as error:
        failed.append(repr(error))
threads = [threading.Thread(target=make) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
sys.exit("; ".join(failed) or None)
"""


def test_many_threads_make_their_first_client_at_once():
    """Celery's lazy module was seen half made, in one process of four."""
    for _ in range(8):
        subprocess.run([sys.executable, "-c", MANY], check=True, timeout=60)
