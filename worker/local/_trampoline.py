"""Run as `python -I -S _trampoline.py SIGNAL PARENT UID GID PROGRAM ARG…`: ties a program's life to its parent's.

Replaces itself by PROGRAM, which the kernel then sends SIGNAL when the parent ends, even by SIGKILL. A program of its
own rather than `preexec_fn`, which may deadlock in a process with threads. It also changes the user (UID >= 0), because
the kernel forgets the death signal when credentials change: the order user, signal, program is the only one that works.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    signal_number, parent, uid, gid = (int(argument) for argument in arguments[:4])
    program = arguments[4:]
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # found before the user changes: it may not read our libraries
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent:  # the parent ended before the signal was set: nobody would ever end this program
        sys.exit(1)
    os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
