"""A scripted OpenAI-compatible server on 127.0.0.1, which the tests reach through litellm like any other model.

::

    with ScriptedModel() as model:
        model.on("informed_extraction", {"entities": [], "facts": [...]})
        model.queue("reconciliation", Fault.status(429, retry_after=1), {"decisions": [...]})
        env = model.environment(embeddings=True)

It answers by the ``task`` in the user turn. What is not scripted is answered by the offline reader, so a test scripts
only what it is about. Nothing is printed.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
import threading
import time
import unicodedata
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.scripted_parts import Call, Fault, Hold

__all__ = ["EMBEDDING", "Call", "Fault", "Hold", "ScriptedModel", "hashing_vector", "tokens_of"]

EMBEDDING = "embedding"  # the pseudo task under which calls to /v1/embeddings are scripted, held and counted


Answer = Any  # a dict or list (sent as JSON), a str (sent raw), a Fault, or None (the default reply)
Reply = Answer | Callable[[dict[str, Any]], Answer]


class ScriptedModel:
    """The server; use it as a context manager. All methods are thread-safe."""

    def __init__(self, *, dimensions: int = 384, latency: float = 0.0) -> None:
        self.dimensions = dimensions
        self.latency = latency  # seconds before each answer
        self._lock = threading.Lock()
        self._replies: dict[str, Reply] = {}
        self._queues: defaultdict[str, deque[Reply]] = defaultdict(deque)
        self._holds: list[Hold] = []
        self._vectors: dict[str, list[float]] = {}
        self._calls: list[Call] = []
        self.errors: list[str] = []  # of the script itself, such as a function that raised; a test may want none
        self._stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> ScriptedModel:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for hold in list(self._holds):
            hold.release()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    @property
    def url(self) -> str:
        """The address of the API, ending in ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def environment(self, *, embeddings: bool = False) -> dict[str, str]:
        """What makes a process use this model (and, when asked, its embeddings)."""
        env = {
            "MANDUA_LLM_MODEL": "openai/scripted",
            "OPENAI_API_KEY": "scripted",
            "OPENAI_API_BASE": self.url,
            "OPENAI_BASE_URL": self.url,  # litellm looks here first
            "NO_PROXY": "127.0.0.1,localhost",
        }
        if embeddings:
            env["MANDUA_EMBEDDING_MODEL"] = "openai/scripted-embedding"
            env["MANDUA_EMBEDDING_DIMENSIONS"] = str(self.dimensions)
        return env

    # -- the script ----------------------------------------------------------------------------------------------

    def on(self, task: str, reply: Reply) -> None:
        """Answer every call of ``task`` with ``reply``: a dict or list, a raw str, a Fault, or a function of the
        payload that returns one of these (None: the default reply)."""
        with self._lock:
            self._replies[task] = reply

    def queue(self, task: str, *replies: Reply) -> None:
        """Answer the next calls of ``task`` with these, one each, before what ``on`` says."""
        with self._lock:
            self._queues[task].extend(replies)

    def hold(self, task: str, where: Callable[[dict[str, Any]], bool] | None = None) -> Hold:
        """Hold back all calls of ``task`` (whose payload ``where`` accepts) until the handle is released."""
        hold = Hold(task, where)
        with self._lock:
            self._holds.append(hold)
        return hold

    def vector(self, text: str, values: Sequence[float]) -> None:
        """Embed exactly this text as these numbers."""
        with self._lock:
            self._vectors[text] = [float(value) for value in values]

    def reset(self) -> None:
        """Forget script, vectors and calls; let held calls go."""
        with self._lock:
            holds, self._holds = self._holds, []
            self._replies.clear()
            self._queues.clear()
            self._vectors.clear()
            self._calls.clear()
            self.latency = 0.0
        for hold in holds:
            hold.release()

    # -- what came in --------------------------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """The calls so far, embeddings included (task "embedding"), in order of arrival."""
        with self._lock:
            return list(self._calls)

    def count(self, task: str | None = None) -> int:
        """How many calls of ``task`` came in; without a task, of all but embeddings."""
        return sum(call.task == task if task else call.task != EMBEDDING for call in self.calls)

    # -- what answers --------------------------------------------------------------------------------------------

    def answer(self, call: Call) -> Answer:
        """Record a call, wait as the script says, and return what it is answered with."""
        with self._lock:
            self._calls.append(call)
            waiting = self._queues[call.task]
            reply = waiting.popleft() if waiting else self._replies.get(call.task)
            holds = [hold for hold in self._holds if hold.concerns(call)]
        for hold in holds:
            hold.pass_through()
        if self.latency:
            self._stopping.wait(self.latency)
        return reply(call.payload) if callable(reply) else reply

    def embed(self, text: str, width: int) -> list[float]:
        """The vector of a text: the scripted one, else one by which similar texts are near each other."""
        with self._lock:
            known = self._vectors.get(text)
        return known if known is not None else hashing_vector(text, width)

    def pause(self, seconds: float) -> bool:
        """Wait; True when the server is being stopped meanwhile."""
        return self._stopping.wait(seconds)


def hashing_vector(text: str, width: int) -> list[float]:
    """A unit vector made of the folded words and character trigrams of ``text``; the same on every machine."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    folded = "".join(c if c.isalnum() else " " for c in decomposed if not unicodedata.combining(c))
    vector = [0.0] * width
    for word in folded.split():
        padded = f"^{word}$"
        grams = [(padded[i : i + 3], 0.35) for i in range(len(padded) - 2)]
        for gram, weight in [(word, 1.0), *grams]:
            digest = hashlib.blake2b(gram.encode(), digest_size=8).digest()
            place, sign = int.from_bytes(digest[:4], "big") % width, 1 if digest[4] & 1 else -1
            vector[place] += sign * weight
    norm = math.sqrt(sum(value * value for value in vector))
    if norm == 0:
        return [1.0, *[0.0] * (width - 1)]
    return [value / norm for value in vector]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
    model: ScriptedModel

    def handle_error(self, request: Any, client_address: Any) -> None:  # a killed client is no news here
        pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # headers and body in one segment

    def log_message(self, format: str, *args: Any) -> None:
        pass

    @property
    def model(self) -> ScriptedModel:
        assert isinstance(self.server, _Server)
        return self.server.model

    def do_POST(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if len(sent) < int(self.headers.get("Content-Length", 0)):
            self.close_connection = True  # the client was killed in the middle of its sentence
            return
        body = json.loads(sent or b"{}")
        try:
            if self.path.endswith("/chat/completions"):
                self._chat(body)
            elif self.path.endswith("/embeddings"):
                self._embeddings(body)
            else:
                self._error(Fault.status(404, code="not_found"))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client was killed or gave up
        except Exception as error:
            self.model.errors.append(f"{_sent(body).get('task', EMBEDDING)}: {error!r}")
            self._error(Fault.status(500, text="the scripted model itself failed; see its errors"))

    def _chat(self, body: dict[str, Any]) -> None:
        system = "\n".join(_content(m) for m in body["messages"] if m["role"] in ("system", "developer"))
        payload = _sent(body)
        task = str(payload.get("task"))
        answer = self.model.answer(Call(task, payload, system, time.monotonic(), body))
        if answer is None:
            answer = _offline_reply(task, system, payload)
        if isinstance(answer, Fault):
            self._fault(answer, body)
        else:
            text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
            self._json(_completion(body, text))

    def _fault(self, fault: Fault, body: dict[str, Any]) -> None:
        if fault.kind == "status":
            self._error(fault)
        elif fault.kind == "timeout":
            self.model.pause(fault.seconds)
            self.close_connection = True
        elif fault.kind == "drip":
            self._drip(_completion(body, fault.text), fault.seconds)
        elif fault.kind == "refusal":
            completion = _completion(body, "")
            completion["choices"][0]["message"] = {"role": "assistant", "content": None, "refusal": fault.text}
            self._json(completion)
        else:
            reason = fault.kind if fault.kind in ("length", "content_filter") else "stop"
            self._json(_completion(body, fault.text, finish_reason=reason))

    def _embeddings(self, body: dict[str, Any]) -> None:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        call = Call(EMBEDDING, {"task": EMBEDDING, "texts": texts}, "", time.monotonic(), body)
        answer = self.model.answer(call)
        fault = answer if isinstance(answer, Fault) else Fault("none")
        if fault.kind in ("status", "timeout", "drip"):
            self._fault(fault, {"model": body.get("model"), "messages": []})
            return
        width = fault.number if fault.kind == "wrong_width" else self.model.dimensions
        rows = answer if isinstance(answer, list) else [self.model.embed(text, width) for text in texts]
        encoding = None if fault.kind == "floats" else body.get("encoding_format")
        data = [
            {"object": "embedding", "index": index, "embedding": _encoded(row, encoding)}
            for index, row in enumerate(rows)
        ]
        if fault.kind == "short_batch":
            data = data[: max(0, len(data) - fault.number)]
        if fault.kind == "shuffled":
            data.reverse()
        tokens = sum(_tokens(text) for text in texts)
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        self._json({"object": "list", "data": data, "model": body.get("model"), "usage": usage})

    def _error(self, fault: Fault) -> None:
        message = fault.text or f"scripted error {fault.status_code}"
        error = {"message": message, "type": fault.code or "scripted", "code": fault.code, "param": None}
        headers = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
        self._json({"error": error}, status=fault.status_code, headers=headers)

    def _json(self, value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, header in (headers or {}).items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def _drip(self, value: Any, interval: float) -> None:
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for byte in _bytes_of(data):
            self.wfile.write(byte)
            self.wfile.flush()
            if self.model.pause(interval):
                self.close_connection = True
                return


def _bytes_of(data: bytes) -> Iterator[bytes]:
    for position in range(len(data)):
        yield data[position : position + 1]


def _sent(body: Mapping[str, Any]) -> dict[str, Any]:
    """Our JSON in a call; an empty one where there is none, as in a call for embeddings."""
    # litellm turns the system message of some models into a user message; ours is the last one.
    user = [_content(message) for message in body.get("messages", []) if message["role"] == "user"]
    payload: dict[str, Any] = json.loads(user[-1]) if user else {}
    return payload


def _content(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _tokens(text: str) -> int:
    return max(1, len(text) // 4)


def tokens_of(call: Call, answer: Answer) -> int:
    """The tokens, sent and received, for which a call that got ``answer`` is billed; 0 where it got no completion."""
    if isinstance(answer, Fault):
        if answer.kind in ("status", "timeout"):
            return 0
        text = "" if answer.kind == "refusal" else answer.text
    else:
        text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    return int(_completion(call.body, text)["usage"]["total_tokens"])


def _completion(body: Mapping[str, Any], text: str, *, finish_reason: str = "stop") -> dict[str, Any]:
    sent = sum(_tokens(_content(message)) for message in body.get("messages", []))
    received = _tokens(text)
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": body.get("model"),
        "choices": [
            {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text}},
        ],
        "usage": {"prompt_tokens": sent, "completion_tokens": received, "total_tokens": sent + received},
    }


def _encoded(row: Sequence[float], encoding: str | None) -> Any:
    if encoding == "base64":
        return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()
    return list(row)


def _offline_reply(task: str, system: str, payload: dict[str, Any]) -> str:
    from worker.llm.offline import OfflineProvider

    plain = {key: value for key, value in payload.items() if key != "task"}
    return str(OfflineProvider().complete(task, system, plain).text)
