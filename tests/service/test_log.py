from __future__ import annotations

import json
import logging
import sys

from service.log import JsonFormatter


def record(message: str, **extra: object) -> logging.LogRecord:
    made = logging.getLogger("adrel.test").makeRecord(
        "adrel.test", logging.INFO, "file.py", 1, message, (), None, extra=extra
    )
    made.created = 0.0
    return made


def test_a_record_is_one_line_of_json_with_its_extra_fields() -> None:
    line = JsonFormatter().format(record("ready\nnow", workers=2))
    assert "\n" not in line
    assert json.loads(line) == {
        "ts": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "logger": "adrel.test",
        "message": "ready\nnow",
        "workers": 2,
    }


def test_fields_that_stand_in_every_line_stand_in_this_one() -> None:
    assert json.loads(JsonFormatter(worker=2).format(record("ready")))["worker"] == 2


def test_an_exception_comes_with_its_traceback() -> None:
    made = record("failed")
    try:
        raise ValueError("why")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert "ValueError: why" in json.loads(JsonFormatter().format(made))["exception"]
