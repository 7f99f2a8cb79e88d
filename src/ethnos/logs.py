"""What Ethnos says while it works: lines for people, or JSON objects with run, tick and agent for machines.

`ETHNOS_LOG=json` asks for JSON, `ETHNOS_LOG_LEVEL=debug` for more. Lines go to standard error; in Ray's actors that
is their log file.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

_KEY_LIKE = re.compile(r"(\b(?:sk|key|hf|gsk|xai)[-_]|Bearer )[\w*.-]{6,}")
_about: ContextVar[dict[str, Any]] = ContextVar("about", default={})  # noqa: B039 - never changed in place


@contextmanager
def about(**what: Any) -> Iterator[None]:
    """All that is said inside is about this run, tick or agent."""
    before = _about.set({**_about.get(), **what})
    try:
        yield
    finally:
        _about.reset(before)


class JsonLines(logging.Formatter):
    """One object a line, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": hide(record.getMessage()),
            **{k: v for k, v in _about.get().items() if isinstance(v, str | int | float)},
        }
        if record.exc_info and record.exc_info[1] is not None:
            said["error"] = hide(f"{type(record.exc_info[1]).__name__}: {record.exc_info[1]}")
        return json.dumps(said, allow_nan=False)


class Lines(logging.Formatter):
    """A line for people; whatever came from elsewhere stays on it."""

    def format(self, record: logging.LogRecord) -> str:
        where = " ".join(f"{k}={v}" for k, v in _about.get().items())
        text = hide(record.getMessage()).encode("unicode_escape").decode()
        return f"{record.levelname.lower()}: {text}" + f" ({where})" * bool(where)


def hide(text: str) -> str:
    """Without what looks like a key or a token."""
    return _KEY_LIKE.sub(r"\1[hidden]", text)


def configure() -> None:
    """Set up the logger `ethnos` as the environment asks; the root logger is left to whoever owns the process."""
    logger = logging.getLogger("ethnos")
    for old in [h for h in logger.handlers if getattr(h, "of_ethnos", False)]:
        logger.removeHandler(old)
    handler = logging.StreamHandler(sys.stderr)
    handler.of_ethnos = True  # type: ignore[attr-defined]
    handler.setFormatter(JsonLines() if os.environ.get("ETHNOS_LOG") == "json" else Lines())
    logger.addHandler(handler)
    level = os.environ.get("ETHNOS_LOG_LEVEL", "info" if os.environ.get("ETHNOS_LOG") == "json" else "warning")
    logger.setLevel(level.upper() if level.upper() in logging.getLevelNamesMapping() else "WARNING")
    logger.propagate = False


__all__ = ["JsonLines", "Lines", "about", "configure", "hide"]
