from __future__ import annotations

import argparse

import pytest

from deploy.loadtest.locust_options import add_options


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(options)


def test_without_options_it_is_a_closed_loop_of_auctions() -> None:
    options = parsed()
    assert (options.user_rps, options.shape, options.ads) == (0, "steady", 20)
    assert not options.host_is_mine


def test_a_master_can_send_every_option_to_its_workers() -> None:
    options = parsed("--record", "a folder", "--shape", "spike", "--user-rps", "2")
    assert {type(value) for value in vars(options).values()} <= {str, int, float, bool}


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--ads", "0", "0 is not in 1-150"),
        ("--ads", "151", "151 is not in 1-150"),
        ("--timeout-ms", "0", "0 is not above 0"),
        ("--timeout-ms", "nan", "nan is not above 0"),
        ("--network-ms", "-1", "-1 is not a number from 0"),
        ("--user-rps", "inf", "inf is not a number from 0"),
        ("--shape", "wave", "invalid choice"),
    ],
)
def test_a_wrong_value_is_told_with_its_limit(
    option: str, value: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(f"{option}={value}")
    error = capsys.readouterr().err
    assert option in error
    assert told in error
