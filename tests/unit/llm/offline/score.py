"""How many of the hundred plain sentences the offline reader reads right: ``python -m tests.unit.llm.offline.score``.

A sentence is read right when every expected fact is there (subject, words, date), every expected relation is there, no
forbidden words appear, and nothing much is made up: at most one fact more than expected (none, where none is
expected), unless the line allows another number.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from worker.llm.offline import OfflineProvider
from worker.llm.offline.text import fold, mentions

SENTENCES = Path(__file__).with_name("plain_sentences.jsonl")
_SYMMETRICAL = {
    "spouse_of",
    "partner_of",
    "engaged_to",
    "fiance_of",
    "sibling_of",
    "friend_of",
    "neighbor_of",
    "colleague_of",
    "cousin_of",
}


def load(path: Path = SENTENCES) -> list[dict[str, Any]]:
    """The sentences with their expected readings."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def reading(row: dict[str, Any]) -> dict[str, Any]:
    """What the reader makes of one line."""
    payload = {k: row.get(k) for k in ("message", "speaker", "message_date")} | {
        "recent_messages": row.get("recent_messages", []),
        "known": [],
    }
    reply: dict[str, Any] = json.loads(OfflineProvider().complete("informed_extraction", "", payload).text)
    return reply


def _one_of(word: str, text: str) -> bool:
    return any(mentions(text, option) for option in word.split("|"))


def _is_there(expected: dict[str, Any], facts: list[dict[str, Any]]) -> bool:
    subjects = expected["subject"] if isinstance(expected["subject"], list) else expected["subject"].split("|")
    return any(
        fold(fact["subject"]) in {fold(s) for s in subjects}
        and all(_one_of(word, fact["text"]) for word in expected["must_contain"])
        and (fact["event_date"] or "").startswith(expected.get("event_date", ""))
        for fact in facts
    )


def _edge_is_there(expected: dict[str, Any], edges: list[dict[str, Any]]) -> bool:
    for edge in edges:
        if edge["rel_type"] not in expected["rel_type"].split("|"):
            continue
        ends = (fold(edge["source"]), fold(edge["target"]))
        wanted = (fold(expected["source"]), fold(expected["target"]))
        if ends == wanted or (edge["rel_type"] in _SYMMETRICAL and ends == wanted[::-1]):
            return True
    return False


def faults(row: dict[str, Any], reply: dict[str, Any]) -> list[str]:
    """What is wrong with a reading; empty if it is right."""
    facts = reply["facts"]
    wrong = [f"missing fact {e}" for e in row["facts"] if not _is_there(e, facts)]
    wrong += [f"missing relation {e}" for e in row.get("relations", []) if not _edge_is_there(e, reply["relations"])]
    wrong += [f"says {word!r}" for word in row.get("must_not", []) if any(mentions(f["text"], word) for f in facts)]
    limit = row.get("at_most", len(row["facts"]) + 1 if row["facts"] else 0)
    if len(facts) > limit:
        wrong.append(f"{len(facts)} facts, at most {limit}")
    return wrong


def score(path: Path = SENTENCES) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """(right, all) by language, and a line for every miss."""
    counts: dict[str, tuple[int, int]] = {}
    misses = []
    for row in load(path):
        reply = reading(row)
        wrong = faults(row, reply)
        right, total = counts.get(row["lang"], (0, 0))
        counts[row["lang"]] = (right + (not wrong), total + 1)
        if wrong:
            edges = [tuple(edge.values()) for edge in reply["relations"]]
            told = [(f["subject"], f["text"], f["event_date"]) for f in reply["facts"]]
            misses.append(f"{row['id']} {row['message']!r}: {'; '.join(wrong)}\n      read: {told} {edges}")
    return counts, misses


def main() -> None:
    """Print the misses and the figure."""
    counts, misses = score(Path(sys.argv[1]) if len(sys.argv) > 1 else SENTENCES)
    for miss in misses:
        sys.stdout.write(miss + "\n")
    right = sum(r for r, _t in counts.values())
    total = sum(t for _r, t in counts.values())
    by_language = ", ".join(f"{lang} {r}/{t}" for lang, (r, t) in sorted(counts.items()))
    sys.stdout.write(f"{right}/{total} plain sentences read right ({by_language})\n")


if __name__ == "__main__":
    main()
