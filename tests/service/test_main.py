from __future__ import annotations

import subprocess
import sys

import pytest

from service.__main__ import LAST_BATCHES_S, _batches_end
from tests.service.test_imports import ROOT


@pytest.mark.parametrize("missing", ["uvicorn", "onnxruntime"])
def test_without_its_extra_the_command_says_in_a_line_what_to_install(missing: str) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from service.__main__ import main; sys.exit(main())"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"adrel: no module {missing}")
    assert "'.[serve]'" in line


@pytest.mark.parametrize(
    ("ends_after_s", "ended"),
    [(0.0, True), (LAST_BATCHES_S / 2, True), (LAST_BATCHES_S * 2, False)],
)
def test_a_batch_that_runs_at_the_end_has_a_little_time(ends_after_s: float, ended: bool) -> None:
    now_s = [100.0]

    def sleep(seconds: float) -> None:
        now_s[0] += seconds

    def running() -> int:
        return int(now_s[0] < 100 + ends_after_s)

    assert _batches_end(running, lambda: now_s[0], sleep) is ended
    assert now_s[0] <= 100 + LAST_BATCHES_S + 0.02
