from __future__ import annotations

from pathlib import Path

import pytest

from service.settings import Settings, load_settings
from service.startup_errors import InvalidSetting, UnknownSetting


def test_the_command_line_wins_over_the_environment_and_that_over_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ADREL_PORT", "9001")
    monkeypatch.setenv("ADREL_MAX_BATCH_PAIRS", "16")
    settings = load_settings(["--port", "9002", "--bundle", "some/where"], {})
    assert settings.port == 9002
    assert settings.max_batch_pairs == 16
    assert settings.bundle == Path("some/where")
    assert settings.host == "127.0.0.1"


def test_the_playground_is_a_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings([], {}).playground
    assert load_settings(["--playground"], {}).playground
    assert not load_settings(["--no-playground"], {}).playground
    monkeypatch.setenv("ADREL_PLAYGROUND", "false")
    assert not load_settings([], {}).playground


def test_a_misspelt_variable_stops_the_start_with_a_suggestion() -> None:
    with pytest.raises(UnknownSetting, match="did you mean ADREL_MAX_BATCH_TOKENS"):
        load_settings([], {"ADREL_MAX_BATCH_TOKEN": "4096"})


def test_a_variable_like_none_of_ours_stops_the_start_without_one() -> None:
    with pytest.raises(UnknownSetting, match=r"unknown setting ADREL_QQQQ$"):
        load_settings([], {"ADREL_QQQQ": "1"})


def test_the_variables_that_kubernetes_makes_of_a_service_named_adrel_are_let_by() -> None:
    load_settings([], {"ADREL_SERVICE_HOST": "10.0.0.1", "ADREL_PORT_8000_TCP_ADDR": "10.0.0.1"})


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADREL_HOST", "")
    assert load_settings([], {}).host == "127.0.0.1"


def test_variables_of_other_programs_are_none_of_our_business() -> None:
    assert load_settings([], {"PORT": "1", "ADRELIC": "2"}).port == 8000


@pytest.mark.parametrize(
    ("argument", "value"),
    [("--port", "70000"), ("--workers", "0"),
     ("--inference-threads", "-1"), ("--max-padding-ratio", "1.0"),
     ("--provider", "tpu"), ("--max-batch-pairs", "many"), ("--default-timeout-ms", "0"),
     ("--drain-timeout-s", "inf")],
)  # fmt: skip
def test_a_value_that_cannot_work_is_refused_by_name(argument: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=argument.removeprefix("--").replace("-", "_")):
        load_settings([argument, value], {})


def test_settings_that_contradict_each_other_are_refused_with_both_values() -> None:
    with pytest.raises(InvalidSetting, match=r"90000.*60000"):
        load_settings(["--default-timeout-ms", "90000"], {})


def test_every_setting_says_what_it_trades() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, f"{name} has no description"


def test_settings_cannot_be_changed_after_the_start() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().__setattr__("port", 1)  # mypy knows that it cannot be set


@pytest.mark.parametrize("argv", [["--bundle", ""], ["--bundle="], ["--port", "", "--host", "::1"]])
def test_an_empty_option_is_refused_instead_of_ignored(argv: list[str]) -> None:
    with pytest.raises(InvalidSetting, match=r"--(bundle|port): is empty"):
        load_settings(argv, {})


@pytest.mark.parametrize("name", ["ADREL_API_KEYS", "adrel_api_keys_file"])
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


@pytest.mark.parametrize(
    "variable",
    ["ADREL_API_KEYS", "ADREL_API_KEYS_FILE", "ADREL_ADMIN_KEYS", "ADREL_ADMIN_KEYS_FILE"],
)
def test_keys_that_were_lost_on_the_way_stop_the_start(variable: str) -> None:
    with pytest.raises(InvalidSetting, match=f"{variable}: is empty"):
        load_settings([], {variable: " "})


def test_keys_of_operators_without_a_port_of_theirs_stop_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidSetting, match="admin_keys need an admin_port"):
        load_settings(["--admin-keys-file", "keys"], {})
    monkeypatch.setenv("ADREL_ADMIN_KEYS", "secret")
    with pytest.raises(InvalidSetting, match="admin_keys need an admin_port") as told:
        load_settings([], {})
    assert "secret" not in str(told.value)
    assert load_settings(["--admin-port", "0"], {}).admin_keys is not None


def test_keys_from_the_environment_are_not_shown_with_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ADREL_API_KEYS", "secret")
    settings = load_settings([], {})
    assert settings.api_keys is not None
    assert settings.api_keys.get_secret_value() == "secret"
    assert "secret" not in f"{settings!r} {settings}"
    with pytest.raises(InvalidSetting) as told:
        load_settings(["--default-timeout-ms", "90000"], {})
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("url", ["redis://user:secret@cache", "redis://:secret@cache:port"])
def test_a_password_in_the_url_of_redis_stops_the_start_and_is_not_shown(url: str) -> None:
    with pytest.raises(InvalidSetting, match="redis_url") as told:
        load_settings(["--redis-url", url], {})
    assert "secret" not in str(told.value)


def test_the_password_of_redis_comes_from_the_environment_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ADREL_REDIS_PASSWORD", "secret")
    settings = load_settings(["--redis-url", "redis://cache"], {})
    assert settings.redis_password is not None
    assert settings.redis_password.get_secret_value() == "secret"
    assert "secret" not in f"{settings!r} {settings}"


def test_a_url_that_names_no_redis_stops_the_start() -> None:
    with pytest.raises(InvalidSetting, match=r"redis_url is no URL of the form redis://"):
        load_settings(["--redis-url", "cache:6379"], {})
