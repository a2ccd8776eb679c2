from __future__ import annotations

import io
import os
import queue
import re
import signal
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.integration.local.conftest import CHECKOUT, Owner, assert_ends
from worker.local import proc
from worker.local.errors import LocalStackError
from worker.local.processes import Backoff, ProcessEvent, ProcessRunner
from worker.local.procfile import ProcessLine, parse_procfile, read_procfile, select

# It tells its own pid and its child's, and neither ends on SIGTERM.
STUBBORN = "trap '' TERM; sleep 600 & echo stubborn $$ $!; wait; wait"
# What a Celery main with prefork children is to us: it ends on SIGTERM and takes its child with it.
DUTIFUL = "sleep 600 & child=$!; trap 'kill $child; exit 0' TERM; echo dutiful $$ $child; wait"

OWNER = """
import sys
from pathlib import Path
from worker.local import processes
from worker.local.procfile import parse_procfile
processes._GUARD_GRACE = 1.0
runner = processes.ProcessRunner(
    parse_procfile(Path(sys.argv[1]).read_text()), {}, cwd=Path("/"), grace=float(sys.argv[2]), output=sys.stdout.buffer
)
runner.run()
print("done", flush=True)
"""


class Watched:
    """A runner whose events can be waited for."""

    def __init__(
        self, lines: list[ProcessLine], tmp_path: Path, *, output: BinaryIO | None = None, **options: object
    ) -> None:
        self.events: queue.SimpleQueue[ProcessEvent] = queue.SimpleQueue()
        self.said = io.BytesIO()
        self.runner = ProcessRunner(
            lines,
            {"PATH": "/usr/bin:/bin"},
            cwd=tmp_path,
            on_event=self.events.put,
            output=output or self.said,
            **options,  # type: ignore[arg-type]
        )

    def next(self, kind: str, name: str) -> ProcessEvent:
        while True:
            event = self.events.get(timeout=20)
            if (event.kind, event.name) == (kind, name):
                return event


def shell(name: str, script: str) -> ProcessLine:
    return ProcessLine(name, f'/bin/sh -c "{script}"')


def write_procfile(tmp_path: Path, **scripts: str) -> Path:
    """A Procfile whose lines run scripts, each from a file of its own."""
    lines = []
    for name, script in scripts.items():
        (tmp_path / f"{name}.sh").write_text(script)
        lines.append(f"{name}: /bin/sh {tmp_path}/{name}.sh\n")
    procfile = tmp_path / "Procfile"
    procfile.write_text("".join(lines))
    return procfile


def hear_pids(owner: Owner, count: int) -> list[int]:
    """The pids that `count` processes tell, each its own and its child's."""
    pids: list[int] = []
    while len(pids) < 2 * count:
        if told := re.search(r"(?:stubborn|dutiful) (\d+) (\d+)", owner.hear()):
            pids += [int(told[1]), int(told[2])]
    return pids


def test_procfile_lines_in_order() -> None:
    text = "# all of it\n\nweb: celery -A x worker -n a@%h: b\n  beat:  run ${N:-3}  \n"
    assert parse_procfile(text) == [
        ProcessLine("web", "celery -A x worker -n a@%h: b"),
        ProcessLine("beat", "run ${N:-3}"),
    ]


@pytest.mark.parametrize("line", ["celery worker", "web:", "we b: x", ": x", "ok: again"])
def test_procfile_names_the_bad_line(line: str) -> None:
    with pytest.raises(LocalStackError, match="line 2"):
        parse_procfile(f"ok: x\n{line}\n")


def test_the_projects_own_procfile() -> None:
    lines = read_procfile()
    assert read_procfile(CHECKOUT / "Procfile") == lines
    assert [line.name for line in lines] == ["live", "worker", "beat", "flower"]
    assert [line.name for line in select(lines, ["beat", "worker"])] == ["beat", "worker"]
    with pytest.raises(LocalStackError, match="no process 'wroker'"):
        select(lines, ["wroker"])


def test_a_crashing_process_comes_back_later_each_time_and_alone(tmp_path: Path) -> None:
    lines = [shell("steady", "exec sleep 600"), shell("crashing", "exit 3")]
    watched = Watched(lines, tmp_path, backoff=Backoff(first=0.02, longest=0.1))
    with watched.runner:
        steady = watched.next("started", "steady").pid
        ended = [watched.next("ended", "crashing") for _ in range(6)]
        assert watched.runner.pids()["steady"] == steady
    assert {event.code for event in ended} == {3}
    assert len({event.pid for event in ended}) == 6
    for event, whole in zip(ended, [0.02, 0.04, 0.08, 0.1, 0.1, 0.1], strict=True):
        assert event.delay is not None
        assert whole / 2 <= event.delay <= whole
    assert b"crashing | ended with exit code 3; again in " in watched.said.getvalue()


def test_a_process_that_ran_well_starts_its_backoff_anew(tmp_path: Path) -> None:
    watched = Watched([shell("a", "exit 0")], tmp_path, backoff=Backoff(first=0.02, longest=60, healthy_after=0))
    with watched.runner:
        delays = [watched.next("ended", "a").delay for _ in range(8)]  # doubling, the last would be over a second
    assert max(delay or 99 for delay in delays) <= 0.02


def test_a_killed_process_takes_its_children_with_it_before_it_comes_back(tmp_path: Path) -> None:
    procfile = write_procfile(tmp_path, worker=STUBBORN)
    heard, told = os.pipe()
    lines = parse_procfile(procfile.read_text())
    with open(heard) as reader, open(told, "wb") as writer:  # noqa: PTH123 - descriptors
        watched = Watched(lines, tmp_path, backoff=Backoff(first=0.01), grace=0.1, output=writer)
        watched.runner.start()
        main, child = (int(pid) for pid in reader.readline().split()[-2:])
        assert watched.next("started", "worker").pid == main
        os.kill(main, signal.SIGKILL)
        assert watched.next("ended", "worker").code == -signal.SIGKILL
        assert not proc.is_running(child)
        assert watched.next("started", "worker").pid != main
        watched.runner.stop()


def test_output_goes_behind_the_name_or_to_files(tmp_path: Path) -> None:
    line = shell("talker", "echo one; echo two >&2; printf three")
    watched = Watched([line, shell("x", "exit 0")], tmp_path, backoff=Backoff(first=60, longest=60))
    with watched.runner:
        watched.next("ended", "talker")
    own = [said for said in watched.said.getvalue().splitlines(keepends=True) if said.startswith(b"talker | ")]
    assert own[:3] == [b"talker | one\n", b"talker | two\n", b"talker | three\n"]  # another's may stand between them
    filed = Watched([line], tmp_path, backoff=Backoff(first=60, longest=60), log_dir=tmp_path / "logs")
    with filed.runner:
        filed.next("ended", "talker")
    assert (tmp_path / "logs" / "talker.log").read_text() == "one\ntwo\nthree"


def test_programs_next_to_this_python_are_found(tmp_path: Path) -> None:
    watched = Watched([ProcessLine("python", f"{Path(sys.executable).name} -c 'import psycopg'")], tmp_path)
    with watched.runner:
        assert watched.next("ended", "python").code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything(number: signal.Signals, tmp_path: Path, owners: list[Owner]) -> None:
    owner = Owner(OWNER, write_procfile(tmp_path, one=DUTIFUL, two=DUTIFUL), 60)
    owners.append(owner)
    pids = hear_pids(owner, 2)
    assert owner.signal(number) == 0
    assert not [pid for pid in pids if proc.is_running(pid)]


def test_what_ignores_the_signal_is_killed_after_the_grace(tmp_path: Path, owners: list[Owner]) -> None:
    owner = Owner(OWNER, write_procfile(tmp_path, one=STUBBORN, two=DUTIFUL), 0.3)
    owners.append(owner)
    pids = hear_pids(owner, 2)
    assert owner.signal(signal.SIGTERM) == 0
    assert not [pid for pid in pids if proc.is_running(pid)]


def test_a_second_signal_ends_the_grace(tmp_path: Path, owners: list[Owner]) -> None:
    owner = Owner(OWNER, write_procfile(tmp_path, one=STUBBORN, two=DUTIFUL), 600)
    owners.append(owner)
    pids = hear_pids(owner, 2)
    dutiful = pids[2:] if proc.command_line(pids[0]).endswith("one.sh") else pids[:2]
    owner.process.send_signal(signal.SIGINT)
    assert_ends(dutiful[0])  # the first signal has done its work
    assert owner.signal(signal.SIGINT) == 0
    assert not [pid for pid in pids if proc.is_running(pid)]


def test_a_killed_owner_leaves_no_process(tmp_path: Path, owners: list[Owner]) -> None:
    ended = tmp_path / "ended"
    polite = DUTIFUL.replace("exit 0", f"touch {ended}; exit 0")
    owner = Owner(OWNER, write_procfile(tmp_path, one=STUBBORN, two=polite), 60)
    owners.append(owner)
    pids = hear_pids(owner, 2) + proc.children(owner.process.pid)  # the guard is one of the children
    owner.signal(signal.SIGKILL)
    for pid in pids:
        assert_ends(pid)
    assert ended.exists()  # who can end by itself is told to, and is not killed at once
