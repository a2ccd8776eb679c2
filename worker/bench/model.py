"""The benchmark's model: a process of its own that speaks OpenAI's protocol and answers by ``workload``.

``python -m worker.bench.model --people N --latency SECONDS`` prints its port and serves until its standard input ends.
``GET /calls`` tells how many calls of each kind came in and how many tokens they were; ``POST /reset`` forgets them.
It answers mandua by ``task`` and the peer by its system prompts, with the same content.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import re
import struct
import sys
import threading
import time
from collections import Counter
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from worker.bench.workload import SPEAKER, numbered, reply_to, spoken

CHARS_A_TOKEN = 4
_WORD = re.compile(r"\w+")


@lru_cache(maxsize=100_000)
def vector(text: str, width: int) -> bytes:
    """A unit vector by which texts of the same words are near each other, as little-endian floats."""
    values = [0.0] * width
    for word in _WORD.findall(text.casefold()):
        digest = hashlib.blake2b(word.encode(), digest_size=16).digest()
        for part in range(4):
            place = int.from_bytes(digest[part * 4 : part * 4 + 3], "little") % width
            values[place] += 1.0 if digest[part * 4 + 3] & 1 else -1.0
    norm = sum(value * value for value in values) ** 0.5 or 1.0
    return struct.pack(f"<{width}f", *(value / norm for value in values))


def answer(system: str, user: str, people: int) -> tuple[str, Any]:
    """The kind of a call and its reply."""
    if user.startswith("{"):
        payload = json.loads(user)
        return payload["task"], reply_to(payload["task"], payload, people)
    if "memory reconciliation engine" in system:
        new = user.partition("New facts:\n")[2].partition("\n\nExisting")[0]
        return "peer_reconciliation", {
            "decisions": [{"new_fact_index": n, "action": "ADD"} for n in range(1, len(new.splitlines()) + 1)]
        }
    if "resolve entity identity" in system:
        return "peer_resolution", {"match_index": 0}
    if "emotion classifier" in system:
        return "peer_emotion", {"emotion_primary": "neutral", "emotion_intensity": 0.0, "energy_level": "medium"}
    said = spoken(numbered(user), people)
    return "peer_extraction", {
        "entities": [{"name": said.name, "type": "person", "aliases": []},
                     {"name": said.organization, "type": "organization", "aliases": []},
                     {"name": SPEAKER, "type": "person", "aliases": []}],
        "facts": [{"subject": subject, "fact": text, "confidence": 0.95, "importance_category": "stable_preference"}
                  for subject, text in said.facts],
        "relations": [{"source": said.name, "target": said.organization, "rel_type": "works_at"}],
        "updated_profiles": {},
    }  # fmt: skip


class Server(ThreadingHTTPServer):
    """Counts what comes in."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, people: int, latency: float, width: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.people, self.latency, self.width = people, latency, width
        self.calls: Counter[str] = Counter()
        self.lock = threading.Lock()

    def note(self, kind: str, tokens_in: int = 0, tokens_out: int = 0) -> None:
        """Count a call and its tokens."""
        with self.lock:
            self.calls.update({kind: 1, "input_tokens": tokens_in, "output_tokens": tokens_out})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        with self.server.lock:
            self._send(dict(self.server.calls))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if self.path.endswith("/embeddings"):
            self._embed(body)
        elif self.path.endswith("/reset"):
            with self.server.lock:
                self.server.calls.clear()
            self._send({})
        else:
            self._complete(body)

    def _complete(self, body: dict[str, Any]) -> None:
        began = time.monotonic()
        system, user = (str(message["content"]) for message in (body["messages"][0], body["messages"][-1]))
        kind, reply = answer(system, user, self.server.people)
        text = json.dumps(reply)
        sent = sum(len(str(message["content"])) for message in body["messages"]) // CHARS_A_TOKEN
        self.server.note(kind, sent, len(text) // CHARS_A_TOKEN)
        time.sleep(max(0.0, self.server.latency - (time.monotonic() - began)))
        usage = {"prompt_tokens": sent, "completion_tokens": len(text) // CHARS_A_TOKEN}
        self._send({
            "id": "c", "object": "chat.completion", "created": 1, "model": body.get("model"),
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {**usage, "total_tokens": sum(usage.values())},
        })  # fmt: skip

    def _embed(self, body: dict[str, Any]) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        self.server.note("embedding")
        self.server.note("embedded_texts")
        with self.server.lock:
            self.server.calls["embedded_texts"] += len(texts) - 1
        width = int(body.get("dimensions") or self.server.width)
        rows = [vector(text, width) for text in texts]
        as_base64 = body.get("encoding_format") == "base64"
        data = [
            {"object": "embedding", "index": index,
             "embedding": base64.b64encode(row).decode() if as_base64 else struct.unpack(f"<{width}f", row)}
            for index, row in enumerate(rows)
        ]  # fmt: skip
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        self._send({"object": "list", "data": data, "model": body.get("model"), "usage": usage})

    def _send(self, value: Any) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


def main() -> None:
    """Serve until standard input ends, which it does when whoever started this is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--width", type=int, default=384)
    chosen = parser.parse_args()
    server = Server(chosen.people, chosen.latency, chosen.width)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
