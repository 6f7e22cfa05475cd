from __future__ import annotations

import subprocess
import sys

import pytest

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
