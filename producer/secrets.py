"""Secrets are masked before a text reaches a model, a fact, a profile, an embedding or a log (issue: PRV-02).

A small, documented list in place of a detector library: those that exist scan source code line by line, load plug-ins,
and know no prose ("minha senha é …") nor text without word gaps. What is looked for:

- private key blocks (PEM); keys and tokens by their issuer's prefix (sk-, ghp_, AKIA, AIza, xox…, hf_, glpat-, SG., …);
- JWTs, bearer tokens, passwords inside URLs;
- payment card numbers: 13 to 19 digits that begin like one and pass Luhn's check;
- whatever follows "password", "senha", "PIN", "API key", 密码 … and a copula or colon;
- long mixed strings of capitals, small letters and digits.

Boundaries are ASCII, so that a key next to Chinese or Japanese text is found as well. The mask says what was there,
so that a fact may still tell that a key was shared.

It lives on the producer's side because an event is masked where it is accepted, if at all (``redacts_events``), and
producers may do that themselves; the worker masks all that it reads.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_B = r"(?<![A-Za-z0-9_\-])"
_PASSWORD = (
    r"(?:(?<![A-Za-z])(?:pass(?:word|phrase|code)|pwd|senha|contrase(?:ñ|n\u0303|n)a|mot de passe|passwort|kennwort|"
    r"parola d'ordine)(?![A-Za-z])|密码|密碼|口令|パスワード|暗証番号|비밀번호|패스워드|пароль|كلمة (?:المرور|السر))"
)
_KEY = (
    r"(?:(?<![A-Za-z])(?:api[ _-]?keys?|(?:access|secret|auth|api)[ _-]?(?:key|token)|token|secret|client[ _-]?secret|"
    r"chave(?: (?:da|de|do) \w+)?|clave(?: (?:de|del) \w+)?|cl[ée] (?:d['’])?api)"
    r"(?![A-Za-z])|密钥|密鑰|令牌|キー|トークン|토큰|ключ)"
)
_PIN = r"(?:(?<![A-Za-z])(?:pin|cvv|cvc|cvv2)(?![A-Za-z]))"
# "for Netflix", "do wifi", "da minha conta": what a password is for.
_FOR = (
    r"(?:[ \t]+(?:for|of|to|on|do|da|de|del|d[ou]s?|no|na|pr[oa]|para|pour|f(?:ü|u\u0308)r)"
    r"(?:[ \t]+[\w\-.@]{1,20}){1,3}?)?"
)
_IS = (
    r"(?:[ \t]*(?:[:=\uff1a]|=>)[ \t]*|"
    r"[ \t]+(?:is|was|é|e\u0301|era|es|est|ist|è)[ \t]+|[ \t]*(?:是|は|은|는|это|—|–)[ \t]*)"
)
_VALUE = r"[\"'`“‘«]?([^\s\"'`”’»,;，。、）)]{3,})"
# Behind a copula these say something about the password rather than what it is.
_NO_SECRETS = _words(
    "the very too not so really still that what weak strong safe wrong right old new secret expired my muito "
    "fraca forte errada certa nova antiga segura a o uma um que minha nao não muy debil fuerte la el una tres "
    "trop pas faible sehr zu nicht schwach sicher required needed important obrigatoria igual same"
)


REDACT_EVENTS = "MANDUA_REDACT_EVENTS"


@dataclass(frozen=True, slots=True)
class Masked:
    """A text without its secrets, and how many of which kind were taken out."""

    text: str
    found: dict[str, int]


def redacts_events() -> bool:
    """Whether this deployment masks secrets in the events themselves (MANDUA_REDACT_EVENTS=1), not only behind them."""
    return os.environ.get(REDACT_EVENTS, "").strip().casefold() in ("1", "true", "yes", "on")


def mask(text: str) -> Masked:
    """``text`` with every secret replaced by ``[redacted: kind]``. Masking twice changes nothing."""
    found: dict[str, int] = {}
    for kind, pattern, replaced in _DETECTORS:
        if not pattern.search(text):
            continue

        def take(match: re.Match[str], kind: str = kind, replaced: _Replace = replaced) -> str:
            kept = replaced(match, kind)
            if kept is None:
                return match.group()
            found[kind] = found.get(kind, 0) + 1
            return kept

        text = pattern.sub(take, text)
    return Masked(text, found)


_Replace = Callable[[re.Match[str], str], str | None]


def _whole(match: re.Match[str], kind: str) -> str | None:  # noqa: ARG001
    return f"[redacted: {kind}]"


def _group(match: re.Match[str], kind: str) -> str | None:
    start, end = match.start(1) - match.start(), match.end(1) - match.start()
    whole = match.group()
    return f"{whole[:start]}[redacted: {kind}]{whole[end:]}"


def _said(match: re.Match[str], kind: str) -> str | None:
    value = match.group(1)
    if value.startswith("[redacted") or value.casefold().strip(".!?") in _NO_SECRETS:
        return None
    return _group(match, kind)


def _mixed(match: re.Match[str], kind: str) -> str | None:
    value = match.group(1)
    if value.startswith("[redacted") or not (re.search(r"\d", value) and len(value) >= 6):
        return None
    return _group(match, kind)


def _card(match: re.Match[str], kind: str) -> str | None:
    digits = [unicodedata.digit(char) for char in match.group() if char.isdigit()]
    if not 13 <= len(digits) <= 19 or not _like_a_card(digits):
        return None
    return _whole(match, kind)


def _like_a_card(digits: list[int]) -> bool:
    first_two = digits[0] * 10 + digits[1]
    if not (digits[0] in (4, 5, 6) or 22 <= first_two <= 27 or first_two in (34, 35, 36, 37, 38, 39, 30)):
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


_DETECTORS: tuple[tuple[str, re.Pattern[str], _Replace], ...] = (
    (
        "private key",
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|\Z)", re.S
        ),
        _whole,
    ),
    ("password", re.compile(r"(?<=://)[^\s/:@]*:([^\s/@]+)(?=@)"), _group),
    (
        "api key",
        re.compile(
            _B + r"(?:"
            r"(?:sk|pk|rk)[-_](?=[A-Za-z0-9_\-]*\d)[A-Za-z0-9_\-]{12,}"
            r"|(?:gh[opsur]|hf|npm|whsec|shp(?:at|ca|pa|ss)|dop_v1|github_pat|glpat|figd|lin_api|secret|ntn|r8|gsk|xai)[-_]"
            r"(?=[A-Za-z0-9_\-]*\d)[A-Za-z0-9_\-]{12,}"
            r"|xox[abeprs]-[A-Za-z0-9\-]{10,}|(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,}|AIza[A-Za-z0-9_\-]{30,}"
            r"|SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,}|ya29\.[A-Za-z0-9_\-]{16,}|pypi-[A-Za-z0-9_\-]{20,}"
            r"|\d{8,10}:[A-Za-z0-9_\-]{35}(?![A-Za-z0-9])"
            r")"
        ),
        _whole,
    ),
    ("token", re.compile(_B + r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?"), _whole),
    ("token", re.compile(r"(?<![A-Za-z])[Bb]earer[ \t]+(?=[A-Za-z0-9._\-]*\d)([A-Za-z0-9._~+/\-]{16,}=*)"), _group),
    ("card number", re.compile(r"(?<!\d)(?<!\d[.,])\d(?:[ .\-\u2010-\u2014]?\d){12,18}(?!\d)"), _card),
    ("password", re.compile(_PASSWORD + _FOR + _IS + _VALUE, re.I), _said),
    ("pin", re.compile(_PIN + _FOR + r"(?:" + _IS + r"|[ \t]+)" + r"(\d{3,8})(?!\d)", re.I), _group),
    ("api key", re.compile(_KEY + _FOR + _IS + _VALUE, re.I), _mixed),
    (
        "token",
        re.compile(
            r"(?<![A-Za-z0-9_\-/=+.])(?=[A-Za-z0-9_\-/+]*[a-z])(?=[A-Za-z0-9_\-/+]*[A-Z])(?=[A-Za-z0-9_\-/+]*\d)"
            r"(?![A-Za-z]+(?:[-/][A-Za-z]+)+)[A-Za-z0-9_\-/+]{32,}={0,2}(?![A-Za-z0-9])"
        ),
        _whole,
    ),
)
