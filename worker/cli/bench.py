"""``bench``: measure this machine with a scripted model; ``worker.bench`` does the work."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from worker.cli import console
from worker.cli.errors import CommandError
from worker.cli.serving import AsJson

if TYPE_CHECKING:
    from worker.bench.figures import Figure
    from worker.bench.scene import Scene

QUICK = ("cost",)
FULL = ("cost", "start", "burst", "agents", "one", "bulk", "scale", "crowd", "embedding", "memory", "peer")
BY_NAME = ("live", "accept", "recall")  # eight minutes more
PARTS = (*FULL, *BY_NAME)

COLUMNS = {key: key for key in ("figure", "value", "unit", "reach", "holds", "note")}
COMPARED = {**COLUMNS, "earlier": "earlier", "change": "change"}


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Only what a message costs; under a minute.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help=f"Only this part ({', '.join(FULL)}), or one that runs only by name ({', '.join(BY_NAME)}).",
            show_default=False,
        ),
    ] = None,
    messages: Annotated[
        int | None,
        typer.Option(
            "--messages", min=100, help="Of the parts bulk (96 if not said) and memory (1,500).", show_default=False
        ),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option("--compare", help="An earlier run's --json, to compare with.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure calls, statements, CPU and throughput on embedded servers; takes minutes, changes nothing of yours."""
    from worker.bench.figures import with_earlier
    from worker.bench.scene import scene

    began = time.monotonic()
    figures: list[Figure] = []
    with scene(console.say) as running:
        for name in _chosen(quick, only):
            figures += _measure(name, running, figures, quick=quick, messages=messages)
    about = {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "python": platform.python_version(),
             "seconds": round(time.monotonic() - began, 1), "quick": quick}  # fmt: skip
    if as_json:
        console.show_json({**about, "figures": [figure.as_json() for figure in figures]})
        return
    title = f"Benchmark ({about['machine']}, {about['seconds']:.0f} s)"
    if compare is None:
        console.show_table(title, COLUMNS, [figure.as_row() for figure in figures])
        return
    try:
        rows = with_earlier(figures, compare)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{compare} is no earlier `mandua bench --json`: {type(error).__name__}") from None
    console.show_table(title, COMPARED, rows)


def _chosen(quick: bool, only: list[str] | None) -> tuple[str, ...]:
    names = tuple(only or (QUICK if quick else FULL))
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        raise CommandError(f"there is no part {unknown[0]!r} of the benchmark; there are {', '.join(PARTS)}", code=2)
    return names


def _measure(
    name: str, scene: Scene, before: list[Figure], *, quick: bool, messages: int | None
) -> list[Figure]:
    from worker.bench import accepting, bulk, cost, crowd, embedding, live, memory, peer, recall, startup, throughput

    so_many = {} if messages is None else {"messages": messages}
    match name:
        case "cost":
            sizes = (0, 5_000) if quick else (0, 5_000, 20_000)
            return cost.cost_by_store(scene, sizes, messages=30 if quick else cost.MESSAGES)
        case "start":
            return startup.cold_start(scene)
        case "live":
            return live.live_beside_an_import(scene)
        case "burst":
            return live.burst(scene)
        case "agents":
            return throughput.many_agents(scene)
        case "one":
            return throughput.one_agent(scene)
        case "bulk":
            return bulk.bulk(scene, **so_many)
        case "scale":
            return throughput.scale_out(scene)
        case "crowd":
            return crowd.beside_a_crowd(scene)
        case "embedding":
            return embedding.default_embeddings(scene)
        case "memory":
            return memory.worker_memory(scene, **so_many)
        case "accept":
            return accepting.accept_under_load(scene)
        case "recall":
            return recall.recall(scene)
        case _:
            return peer.side_by_side(scene, before)
