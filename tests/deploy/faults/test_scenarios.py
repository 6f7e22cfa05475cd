"""Short plays of what `python -m deploy.faults` plays at length, on a small model."""

from __future__ import annotations

import socket
from collections import Counter
from pathlib import Path

import pytest

from deploy.faults import __main__ as command
from deploy.faults.outcomes import Outcome
from deploy.faults.scenarios import SCENARIOS
from deploy.faults.subject import NotStarted
from deploy.faults.verdict import Verdict

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


@pytest.mark.parametrize(
    ("n_good", "complaints", "code"), [(9, (), 0), (4, (), 3), (4, ("an answer was late",), 1)]
)
def test_the_exit_code_tells_a_fault_from_a_play_that_cannot_be_judged(
    n_good: int,
    complaints: tuple[str, ...],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def played(*_: object) -> tuple[Verdict, int]:
        counts = Counter({Outcome.OK: n_good, Outcome.SHED: 10 - n_good})
        return Verdict(counts, 0.0, 0.0, None, complaints), 10

    monkeypatch.setattr(command, "play", played)
    monkeypatch.setattr(command, "with_other_scores", lambda bundle, _: bundle)
    monkeypatch.setattr(command, "right_scores", lambda _: ("v1", {}))
    assert command.main(["--only", "nothing"]) == code
    assert ("too little was answered to judge" in capsys.readouterr().out) == (n_good < 5)


def test_a_service_that_does_not_start_stops_the_play_with_its_last_words(
    tiny_bundle_int8: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(NotStarted, match="cannot listen"):
            command.main(["--bundle", str(tiny_bundle_int8), "--only", "nothing", "--port", port])


def test_no_two_scenarios_share_a_name() -> None:
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS)
