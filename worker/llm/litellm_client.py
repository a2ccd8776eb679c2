"""litellm, set up once a process for this project's way of calling it, and its errors as causes.

It takes about three seconds to import and sets itself up by environment variables, so it is imported here only, at
the first call.
"""

from __future__ import annotations

import email.utils
import importlib
import logging
import math
import os
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import httpx

from worker.llm import deadline
from worker.llm.provider import Cause, ModelError

# A provider whose clock or header is wrong must not send a message to sleep for years.
MAX_RETRY_AFTER = 3600.0

_lock = threading.Lock()
_owner_pid = 0

_NO_MONEY = ("insufficient_quota", "credit balance", "billing_hard_limit", "billing_not_active")
_BAD_KEY = ("api key not valid", "api_key_invalid", "invalid api key", "invalid_api_key", "invalid x-api-key")
_NO_MODEL = ("llm provider not provided", "model_not_found", "model not found", "try pulling it first")
_POLICY = ("content_policy_violation", "content_filter", "content management policy", "responsibleaipolicy")


def litellm_module() -> Any:
    """Return litellm, imported and set up: no telemetry, no fetches, no log of texts, no retries of its own."""
    global _owner_pid
    if _owner_pid == os.getpid():
        return importlib.import_module("litellm")
    with _lock:
        if _owner_pid != os.getpid():
            _set_up()
            _owner_pid = os.getpid()
    return importlib.import_module("litellm")


def _set_up() -> None:
    # Without it the import starts a thread that fetches the price list from the network.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    # In its default mode the import loads a .env file of the current folder into our environment.
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    # It hands each reply to a pool of logging threads that price and copy it for callbacks, of which there are none
    # here: 4 ms of CPU a call. Nothing may wait for them, so all are dropped.
    os.environ["LOGGING_EXECUTOR_MAX_PENDING_TASKS"] = "0"
    litellm: Any = importlib.import_module("litellm")
    from litellm.llms.custom_httpx.http_handler import get_ssl_configuration

    litellm.telemetry = False
    litellm.drop_params = True
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    # There is one layer of retries, and it is the pipeline's.
    litellm.num_retries = None
    litellm.DEFAULT_MAX_RETRIES = 0  # embedding() takes max_retries=0 for "not given"
    # It copies vectors that are still encoded through a type that expects floats.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    # Its log lines quote requests and replies.
    for name in ("LiteLLM", "LiteLLM Proxy", "LiteLLM Router"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    # One pool of connections a process (a forked child must not share its parent's), which knows our deadline.
    litellm.client_session = httpx.Client(
        verify=get_ssl_configuration(),
        follow_redirects=True,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=64),
        event_hooks={"response": [_bind_deadline]},
    )
    litellm.in_memory_llm_clients_cache.flush_cache()


def _bind_deadline(response: httpx.Response) -> None:
    if response.status_code == 422:
        # On 422 litellm drops parameters and asks again, by then without our limit on retries. It is one call here.
        response.status_code = 400
    if isinstance(response.stream, httpx.SyncByteStream):
        response.stream = _DeadlineStream(response.stream, response.request)


class _DeadlineStream(httpx.SyncByteStream):
    """A response's bytes, as long as the call's deadline lasts: what ends a call that nobody waits for any more."""

    def __init__(self, inner: httpx.SyncByteStream, request: httpx.Request) -> None:
        self._inner = inner
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._inner:
            left = deadline.remaining()
            if left is not None and left < 0:
                raise httpx.ReadTimeout("the call's deadline has passed", request=self._request)
            yield chunk

    def close(self) -> None:
        self._inner.close()


def model_error(error: BaseException) -> ModelError:
    """Return a provider's error as a ModelError. Its texts are only searched for known codes and never kept."""
    if isinstance(error, ModelError):
        return error
    if isinstance(error, deadline.DeadlineExceeded):
        return ModelError(Cause.TIMEOUT, "deadline")
    status = _status(error)
    detail = f"http_{status}" if status else type(error).__name__
    return ModelError(_cause(error, status), detail, retry_after=_retry_after(error))


def _cause(error: BaseException, status: int | None) -> Cause:
    litellm = litellm_module()
    codes = (getattr(error, name, None) for name in ("body", "code", "type"))
    text = " ".join(map(str, (error, *codes))).casefold()
    if isinstance(error, (litellm.Timeout, httpx.TimeoutException, TimeoutError)) or status == 408:
        return Cause.TIMEOUT
    if any(code in text for code in (*_NO_MONEY, *_BAD_KEY, *_NO_MODEL)):
        return Cause.MODEL_UNAVAILABLE
    if isinstance(error, litellm.ContentPolicyViolationError) or (status in (400, 403) and _any(_POLICY, text)):
        return Cause.REFUSED
    unavailable = (
        litellm.AuthenticationError,
        litellm.NotFoundError,
        litellm.PermissionDeniedError,
        litellm.BudgetExceededError,
    )
    if isinstance(error, unavailable) or status in (401, 402, 403, 404):
        return Cause.MODEL_UNAVAILABLE
    if isinstance(error, litellm.RateLimitError) or status == 429:
        return Cause.RATE_LIMITED
    if isinstance(error, litellm.BadRequestError) or status in (400, 413, 422):
        return Cause.INVALID_REQUEST
    return Cause.PROVIDER_ERROR


def _any(codes: tuple[str, ...], text: str) -> bool:
    return any(code in text for code in codes)


def _status(error: BaseException) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and not isinstance(status, bool) else None


def _retry_after(error: BaseException) -> float | None:
    """Return the seconds that the provider asks to wait (Retry-After, in seconds or as a date), None if it does not."""
    for headers in (
        getattr(getattr(error, "response", None), "headers", None),
        getattr(error, "litellm_response_headers", None),
        getattr(error, "headers", None),
    ):
        if not isinstance(headers, Mapping):
            continue
        plain = {str(key).casefold(): str(value) for key, value in headers.items()}
        if (milliseconds := _number(plain.get("retry-after-ms"))) is not None:
            return milliseconds / 1000
        if (value := plain.get("retry-after")) is not None:
            return _number(value) if _number(value) is not None else _until(value)
    return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else math.nan
    except ValueError:
        return None
    return _bounded(number) if math.isfinite(number) else None


def _until(value: str) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    return _bounded(moment.timestamp() - time.time())


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), MAX_RETRY_AFTER)
