from __future__ import annotations

import re
import shlex

import pytest

from deploy.capacity.__main__ import main
from tests.deploy.repository import DEPLOY

PAGE = (DEPLOY / "capacity" / "README.md").read_text(encoding="utf-8")
USUAL = "--auctions-per-s 500 --ads 20 --timeout-ms 100 --hit-share 0.6"


def printed(capsys: pytest.CaptureFixture[str], arguments: str) -> str:
    assert main(shlex.split(arguments)) == 0
    return capsys.readouterr().out


def test_the_plan_is_told_with_its_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(capsys, USUAL)
    assert re.match(r"\d+ pods of \d cores, \d+ in each of 3 zones: \d+ cores\n", told)
    for reason in (
        "none cached",
        "network",
        "99 % on time",
        "60% of the pairs",
        "adrel_queue_seconds",
    ):
        assert reason in told


def test_a_single_zone_is_not_told_of_its_loss(capsys: pytest.CaptureFixture[str]) -> None:
    assert "zone" not in printed(capsys, USUAL + " --zones 1")


def test_no_fleet_is_an_error_that_says_what_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split("--auctions-per-s 500 --ads 20 --timeout-ms 5")) == 1
    assert "capacity: timeout_ms: is 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (USUAL + " --hit-share 1.5", "hit_share: takes a share from 0 to 1, got 1.5"),
        (USUAL + " --ads 0", "ads: takes a whole number from 1 to 1,000"),
        (USUAL + " --zones two", "--zones"),
        ("--ads 20 --timeout-ms 100", "--auctions-per-s"),
    ],
)
def test_wrong_options_are_named(
    capsys: pytest.CaptureFixture[str], arguments: str, problem: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(arguments))
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    [(arguments, shown)] = re.findall(
        r"```\n\$ \.venv/bin/python -m deploy\.capacity ([^\n]*)\n(.*?)```", PAGE, re.DOTALL
    )
    assert printed(capsys, arguments) == shown


def test_the_page_s_table_is_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    rows = re.findall(r"^\| `(--.*?)` \| (\d+ x \d+) \|", PAGE, re.MULTILINE)
    assert len(rows) >= 4
    for arguments, pods in rows:
        told = printed(capsys, f"--auctions-per-s 500 --ads 20 {arguments}")
        assert told.startswith("{} pods of {} cores".format(*pods.split(" x ")))
