"""Short plays of what `python -m deploy.faults` plays at length, on a small model."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deploy.faults import __main__ as command
from deploy.faults.scenarios import SCENARIOS
from deploy.faults.subject import NotStarted

# Of a machine that may be busy with other tests; how late is too late is judged on a quiet one.
SHORT = ["--fault-s", "0.6", "--rate", "15", "--timeout-ms", "3000", "--late-ms", "15000",
         "--recover-s", "20"]  # fmt: skip


@pytest.mark.parametrize("names", [("overload", "stop"), ("reload", "kill")])
def test_the_service_survives_and_every_request_is_accounted_for(
    names: tuple[str, ...], tiny_bundle_int8: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = command.main(["--bundle", str(tiny_bundle_int8), "--only", *names, *SHORT])
    printed = capsys.readouterr().out
    assert code == 0, printed
    rows = [
        line for line in printed.splitlines() if line.startswith(tuple(f"| {n}" for n in names))
    ]
    assert len(rows) == len(names), printed


def test_a_service_that_does_not_start_stops_the_play_with_its_last_words(
    tiny_bundle_int8: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(NotStarted, match="cannot listen"):
            command.main(["--bundle", str(tiny_bundle_int8), "--only", "nothing", "--port", port])


def test_no_two_scenarios_share_a_name() -> None:
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS)
