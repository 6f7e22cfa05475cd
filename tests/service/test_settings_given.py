"""Through `load_settings`, which must ask for each refusal."""

from __future__ import annotations

import pytest

from service.settings import load_settings
from service.settings_given import differing
from service.startup_errors import InvalidSetting, UnknownSetting


def test_a_misspelt_variable_stops_the_start_with_a_suggestion() -> None:
    with pytest.raises(UnknownSetting, match="did you mean ADREL_MAX_BATCH_TOKENS"):
        load_settings([], {"ADREL_MAX_BATCH_TOKEN": "4096"})


def test_a_variable_like_none_of_ours_stops_the_start_without_one() -> None:
    with pytest.raises(UnknownSetting, match=r"unknown setting ADREL_QQQQ$"):
        load_settings([], {"ADREL_QQQQ": "1"})


def test_the_variables_that_kubernetes_makes_of_a_service_named_adrel_are_let_by() -> None:
    load_settings([], {"ADREL_SERVICE_HOST": "10.0.0.1", "ADREL_PORT_8000_TCP_ADDR": "10.0.0.1"})


def test_variables_of_other_programs_are_none_of_our_business() -> None:
    assert load_settings([], {"PORT": "1", "ADRELIC": "2", "API_KEYS": ""}).port == 8000


@pytest.mark.parametrize("argv", [["--bundle", ""], ["--bundle="], ["--port", "", "--host", "::1"]])
def test_an_empty_option_is_refused_instead_of_ignored(argv: list[str]) -> None:
    with pytest.raises(InvalidSetting, match=r"--(bundle|port): is empty"):
        load_settings(argv, {})


@pytest.mark.parametrize(
    "name",
    ["ADREL_API_KEYS", "adrel_api_keys_file", "ADREL_ADMIN_KEYS", "ADREL_ADMIN_KEYS_FILE"],
)
def test_an_empty_variable_for_keys_stops_the_start_instead_of_opening_the_door(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{name}: is empty"):
        load_settings([], {name: " "})


@pytest.mark.parametrize(
    ("option", "instead"),
    [
        ("api-keys", "--api-keys-file"),
        ("admin-keys", "--admin-keys-file"),
        ("redis-password", "the variable ADREL_REDIS_PASSWORD"),
    ],
)
@pytest.mark.parametrize("spelled", ["--{} secret", "--{}=secret"])
@pytest.mark.parametrize("line", ["-", "_"])
def test_secrets_are_no_option_and_are_not_shown(
    option: str, instead: str, spelled: str, line: str
) -> None:
    argv = spelled.format(option.replace("-", line)).split()
    with pytest.raises(InvalidSetting, match="seen by everyone on the machine") as told:
        load_settings(argv, {})
    assert f"use {instead}" in str(told.value)
    assert "secret" not in str(told.value)


def test_a_refusal_is_in_our_words_alone() -> None:
    with pytest.raises(InvalidSetting) as told:
        load_settings(["--default-timeout-ms", "90000"], {})
    assert str(told.value) == "default_timeout_ms is 90000, over max_timeout_ms 60000"


def test_settings_that_are_not_at_their_defaults_can_be_shown_and_secrets_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert differing(load_settings([], {})) == {}
    monkeypatch.setenv("ADREL_API_KEYS", "secret-0123456789")
    monkeypatch.setenv("ADREL_MAX_QUEUE_MS", "40")
    shown = differing(load_settings(["--workers", "1", "--port", "0"], {}))
    assert shown == {"port": 0, "api_keys": "set, not shown", "max_queue_ms": 40}
    assert "secret" not in str(shown)
