"""A wall clock can jump; deadlines, timers and durations must not."""

from __future__ import annotations

import re

from tests.service.test_imports import ROOT, imported_modules

READS_WALL_TIME = {
    "service/model_life/model_life.py",  # since when a model serves, for people
    "service/api/keys.py",  # when keys were read, for people
    "service/composition/shadowing.py",  # since when a shadow scores, likewise
    "service/workers/membership.py",  # when a reload of all workers ended, likewise
    "service/api/compatible/tei.py",  # fields of other protocols
    "service/api/compatible/rerank.py",
    "service/api/compatible/vllm.py",
    "service/api/tracing.py",  # when a span began
    "service/log.py",  # when a line was written
    "service/api/models_route.py",  # writes down what model_life read
}


def test_only_what_is_told_to_people_reads_the_wall_clock() -> None:
    readers = set()
    for file in sorted((ROOT / "service").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        if re.search(r"\btime\.time(_ns)?\b", text) or "datetime" in imported_modules(file):
            readers.add(str(file.relative_to(ROOT)))
    assert readers - READS_WALL_TIME == set()
