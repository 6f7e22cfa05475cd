"""An ad server that installs the client must not get the service with it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

from tests.service.test_imports import ROOT, imported_modules, without_our_settings

CLIENT = sorted((ROOT / "service" / "client").rglob("*.py"))
OF_OTHERS = {"httpx", "httpcore", "h11"}  # each stands on the next, which comes with it


def test_the_client_imports_httpx_the_standard_library_and_the_words() -> None:
    assert CLIENT
    for file in CLIENT:
        for name in imported_modules(file):
            top = name.split(".")[0]
            ours = name.startswith("service.client") or name == "service.domain"
            assert ours or top in OF_OTHERS or top in sys.stdlib_module_names, f"{file}: {name}"


def test_nothing_of_the_service_imports_the_client() -> None:
    for file in sorted((ROOT / "service").rglob("*.py")):
        if file not in CLIENT:
            assert not [n for n in imported_modules(file) if n.startswith("service.client")]


def test_importing_the_client_leaves_the_environment_as_it_is() -> None:
    code = (
        "import os\nbefore = dict(os.environ)\nimport service.client\n"
        "print(sorted(set(before.items()) ^ set(os.environ.items())))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=without_our_settings(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() == "[]"


def test_a_callers_type_checker_sees_the_clients_types() -> None:
    assert (ROOT / "service" / "py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "py.typed" in project["tool"]["setuptools"]["package-data"]["service"]


def test_importing_the_client_pulls_in_nothing_of_the_server() -> None:
    code = (
        "import sys, service.client\n"
        "banned = ('fastapi', 'starlette', 'pydantic', 'uvicorn', 'orjson', 'prometheus_client',\n"
        "          'numpy', 'onnxruntime', 'tokenizers')\n"
        "print([name for name in banned if name in sys.modules])\n"
        "print(sorted(n for n in sys.modules if n.startswith('service.')\n"
        "             and not n.startswith('service.client')))"
    )
    lines = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(ROOT), capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert lines == ["[]", "['service.domain']"]
