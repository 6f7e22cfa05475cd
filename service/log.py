"""Logs as one JSON object a line, on stderr. Texts of queries and ads are never logged."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from service.log_limit import FewOfEachKind
from service.log_writer import BackgroundHandler

_PLAIN_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message"}


class JsonFormatter(logging.Formatter):
    """A record as JSON: time, level, logger, message, whatever `extra` gave, and the traceback."""

    def __init__(self, **always: object) -> None:
        """Fields that stand in every line."""
        super().__init__()
        self._always = always

    def format(self, record: logging.LogRecord) -> str:
        """One line without a line break."""
        fields: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **self._always,
        }
        extra = {key: value for key, value in vars(record).items() if key not in _PLAIN_FIELDS}
        fields.update(extra)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False, default=str)


def configure_logging(level: str, **always: object) -> BackgroundHandler:
    """Send every logger's records, uvicorn's too, through one JSON handler, which is returned.

    Args:
        level: Least severe lines to write.
        always: Fields that stand in every line.
    """
    handler = BackgroundHandler(sys.stderr)
    handler.setFormatter(JsonFormatter(**always))
    logging.captureWarnings(True)  # Python's own warnings too
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # What callers send can make it write a line each: requests that are no HTTP.
    logging.getLogger("uvicorn.error").filters[:] = [FewOfEachKind()]
    return handler
