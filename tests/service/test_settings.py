from __future__ import annotations

from pathlib import Path

import pytest

from service.settings import Settings, load_settings
from service.startup_errors import InvalidSetting


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


def test_an_empty_variable_is_an_unset_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADREL_HOST", "")
    assert load_settings([], {}).host == "127.0.0.1"


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


def test_operators_need_a_port_of_their_own() -> None:
    with pytest.raises(InvalidSetting, match=r"port and admin_port are both 9000"):
        load_settings(["--port", "9000", "--admin-port", "9000"], {})
    assert load_settings(["--port", "0", "--admin-port", "0"], {}).admin_port == 0


def test_every_setting_says_what_it_trades() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, f"{name} has no description"


def test_settings_cannot_be_changed_after_the_start() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().__setattr__("port", 1)  # mypy knows that it cannot be set


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
