"""Runs a training whose report is the command's stdout."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any


def print_report(train: Callable[[], Any]) -> None:
    """Train, and print the report (a dataclass) as JSON; what is printed meanwhile is on stderr."""
    with contextlib.redirect_stdout(sys.stderr):  # transformers' Trainer prints
        report = train()
    sys.stdout.write(json.dumps(asdict(report), indent=2) + "\n")
