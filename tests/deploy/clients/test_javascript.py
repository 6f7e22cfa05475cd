"""What only JavaScript lets a caller get wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.deploy.clients.driver import Caller
from tests.deploy.clients.stand_in_server import Hangs, standing_in
from tests.deploy.clients.test_calls import ADS, QUERY, SHORT_MS
from tests.deploy.clients.toolchains import CLIENTS, run, tool

NODE = CLIENTS / "node"
TYPES = "--noEmit --allowJs --checkJs --strict --target es2022 --module nodenext --types node"


def said_of(call: str, folder: Path) -> str:
    """What the error of a call says."""
    script = f"""
import {{ AdrelClient }} from "{(NODE / "adrel.mjs").as_uri()}";
try {{
  await {call};
}} catch (error) {{
  console.log(String(error));
}}"""
    return run([tool("node"), "--input-type=module", "-e", script], folder)


@pytest.mark.parametrize(
    "call",
    [
        'new AdrelClient("http://127.0.0.1:9", 50).score("q", [], { timeoutms: 5 })',
        'new AdrelClient("http://127.0.0.1:9", 50).scoreOrFallback("q", [], () => 0, { timeoutms: 5 })',  # noqa: E501  # one call
        'new AdrelClient("http://127.0.0.1:9", 50, { timeoutms: 5 })',
    ],
)
def test_an_option_that_there_is_not_is_refused(call: str, tmp_path: Path) -> None:
    assert said_of(call, tmp_path).startswith("TypeError: timeoutms: no such option; there are ")


@pytest.mark.parametrize("built", ["node"], indirect=True, scope="package")
@pytest.mark.parametrize("given", ["undefined", "promise"])
def test_a_fallback_that_gives_no_number_is_named(caller: Caller, given: str) -> None:
    with standing_in(Hangs()) as server:
        failed = caller.call(server.url, QUERY, ADS, timeout_ms=SHORT_MS, fallback=given)
    assert failed.raised
    named = 'the fallback\'s score for ad "A": takes a number from 0 to 1, got [object '
    assert named + given.capitalize() in failed.message


def test_the_types_hold(tmp_path: Path) -> None:
    tsc = Path(tool("tsc"))
    types = tsc.resolve().parents[2] / "@types"
    if not types.is_dir():
        pytest.skip(f"no types of Node in {os.fspath(types)}")
    run([str(tsc), *TYPES.split(), "--typeRoots", str(types), str(NODE / "example.mjs")], tmp_path)
