"""What the kernel says about processes, read from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path


def is_running(pid: int) -> bool:
    """True while the process runs; a zombie, which only waits to be collected by its parent, does not."""
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def command_line(pid: int) -> str:
    """The command line with spaces between arguments; empty when the process is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


def children(pid: int) -> list[int]:
    """The pids of the direct children, at this moment."""
    return [other for other in _all_pids() if _stat(other)[1:2] == [str(pid)]]


def group_members(pgid: int) -> list[int]:
    """The pids of the running processes of a process group, at this moment."""
    return [pid for pid in _all_pids() if _stat(pid)[2:3] == [str(pgid)] and is_running(pid)]


def kill_all(pids: Iterable[int], number: signal.Signals = signal.SIGKILL) -> None:
    """Signal each process; those already gone are passed over."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def kill_group(pgid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Signal a process group; one already gone is passed over."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pgid, number)


def wait_gone(pids: Iterable[int], timeout: float) -> list[int]:
    """Wait until none of the processes runs, at most `timeout` seconds; returns the pids that still do."""
    deadline = time.monotonic() + timeout
    left = [pid for pid in pids if is_running(pid)]
    while left and time.monotonic() < deadline:
        time.sleep(0.01)  # they are not our children: the kernel offers no event without a pidfd for each
        left = [pid for pid in left if is_running(pid)]
    return left


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """State, parent, process group and the rest of /proc/PID/stat; empty when the process is gone."""
    with contextlib.suppress(OSError):
        # the program's name stands in brackets and may hold spaces and brackets itself
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []
