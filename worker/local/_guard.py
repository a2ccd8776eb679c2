"""Run as `python -I -S _guard.py GRACE` with a pipe as standard input: ends process groups whose owner was killed.

The owner writes `+GROUP` and `-GROUP` lines as groups come and go. The pipe closes when the owner ends, however it
ends. The processes themselves then get SIGTERM from the kernel (see spawn.py); groups that still exist after GRACE
seconds get SIGKILL. The kernel's signal alone is not enough: it does not reach a process's own children, and a worker
may sit in a long call.
"""

import os
import signal
import sys
import time


def _signal_group(group: int, number: int) -> bool:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True


def main(grace: float) -> None:
    groups: set[int] = set()
    for line in sys.stdin:  # ends when the owner has ended
        group = int(line[1:])
        if line.startswith("+"):
            groups.add(group)
        else:
            groups.discard(group)
    deadline = time.monotonic() + grace
    left = {group for group in groups if _signal_group(group, 0)}
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = {group for group in left if _signal_group(group, 0)}
    for group in left:
        _signal_group(group, signal.SIGKILL)


if __name__ == "__main__":
    main(float(sys.argv[1]))
