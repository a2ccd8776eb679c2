"""The peer, PyPI's ``arandu`` 0.14.3: the in-process original, on the same messages, replies and servers.

It is installed for the benchmark alone, into an environment of its own in the cache folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from worker.bench.cost import AGENT, FACTS_AN_ENTITY, MESSAGES, WARM, stored
from worker.bench.figures import Figure
from worker.bench.scene import ROOT, Model, Scene, cache_folder, model
from worker.bench.workload import SPEAKER, spoken
from worker.local.errors import LocalStackError

PEER = "arandu[openai]==0.14.3"
RUNNER = Path(__file__).with_name("peer_runner.py")
WIDTH = 1536
PEOPLE = 200
CALLS = ("peer_extraction", "peer_reconciliation", "peer_resolution", "peer_emotion")


def side_by_side(scene: Scene, ours: Sequence[Figure], *, sizes: tuple[int, ...] = (0, 5_000)) -> list[Figure]:
    """The peer's figures, and ours (as measured before in this run) as a ratio to them."""
    python = _installed(scene)
    known = {figure.name: figure.value for figure in ours}
    figures: list[Figure] = []
    for size in sizes:
        figures += _cost(scene, python, size, known)
    figures += _rates(scene, python, known)
    return figures


def _cost(scene: Scene, python: Path, size: int, known: dict[str, float]) -> list[Figure]:
    messages = MESSAGES + WARM  # as many as ours, so that both have the same context
    people = max(PEOPLE, size // FACTS_AN_ENTITY)
    with model(people=people, latency=0.0, width=WIDTH) as answering:
        scene.say(f"peer: {messages} messages on {size:,} facts")
        said = [_said(AGENT, size + number, people) for number in range(messages)]
        took = _run(scene, python, answering, said, writers=1, size=size, people=people)
        calls = answering.calls()
    asked = sum(calls.get(kind, 0) for kind in CALLS) / messages
    tokens = calls.get("input_tokens", 0) / messages
    on = f"on {size:,} facts"
    found = [
        Figure(f"peer: model calls a message {on}", asked),
        Figure(f"peer: input tokens a message {on}", tokens, "tokens"),
        Figure(f"peer: embedding calls a message {on}", calls.get("embedding", 0) / messages),
        Figure(f"peer: SQL statements a message {on}", took["statements"]),
        Figure(f"peer: CPU of a message {on}", took["cpu"] * 1000, "ms",
               note=f"database {took['database'] * 1000:.0f} ms"),
    ]  # fmt: skip
    mine = known.get(f"CPU of a message {on}")
    if mine:
        found.append(Figure(f"CPU of a message / peer's {on}", mine / 1000 / took["cpu"], "×"))
    mine = known.get(f"input tokens a message {on}")
    if mine:
        found.append(Figure(f"input tokens / peer's {on}", mine / tokens, "×", at_most=0.6))
    return found


def _rates(scene: Scene, python: Path, known: dict[str, float], *, latency: float = 0.5) -> list[Figure]:
    found: list[Figure] = []
    plans = (
        (
            "20 agents, backlog",
            "20 agents at concurrency 20",
            20,
            [_said(f"a{n % 20}", n // 20) for n in range(200)],
            3,
        ),
        ("one agent, bulk backlog", "one agent, 20 writers", 20, [_said("one", n) for n in range(60)], 6),
        ("one agent, live burst", "one agent, in sequence", 1, [_said("seq", n) for n in range(20)], 1.5),
    )
    for mine, name, writers, said, reach in plans:
        with model(people=PEOPLE, latency=latency, width=WIDTH) as answering:
            scene.say(f"peer: {name}, {latency} s a call")
            took = _run(scene, python, answering, said, writers=writers, size=0, people=PEOPLE)
        rate = len(said) / took["seconds"]
        found.append(Figure(f"peer: {name}", rate, "messages/s", note=f"{took['failed']:.0f} of {len(said)} lost"))
        if mine in known:
            found.append(Figure(f"{mine} / peer's", known[mine] / rate, "×", at_least=reach))
    return found


def _said(agent: str, number: int, people: int = PEOPLE) -> dict[str, str]:
    return {"agent": agent, "text": spoken(number, people).text, "speaker": SPEAKER}


def _run(
    scene: Scene, python: Path, answering: Model, said: list[dict[str, str]], *, writers: int, size: int, people: int
) -> dict[str, float]:
    """One run of the peer on a database of its own."""
    url = scene.fresh(migrated=False)
    fill: dict[str, Any] | None = None
    if size:
        facts = [fact for number in range(size // 2) for fact in stored(spoken(number, people))]
        names = sorted({name for name, _ in facts} | {spoken(n, people).name for n in range(people)} | {SPEAKER})
        fill = {"facts": facts, "names": names}
    asked = {"database_url": url, "messages": said, "writers": writers, "fill": fill}
    environment = {**os.environ, **answering.environment(), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [str(python), str(RUNNER)], cwd=ROOT, env=environment, input=json.dumps(asked), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise LocalStackError(f"the peer failed: {done.stderr[-600:].strip()}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _installed(scene: Scene) -> Path:
    """The Python of the peer's environment; made at the first use. Raises LocalStackError where it cannot be."""
    folder = cache_folder() / f"peer-{PEER.rpartition('=')[2]}-{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        scene.say(f"peer: installing {PEER}")
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "--quiet", PEER], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise LocalStackError(f"{PEER} cannot be installed: {done.stderr.strip().splitlines()[-1]}")
        (folder / "installed").touch()
    return python
