from __future__ import annotations

import pytest

from service.shared_cache.address import RedisAddress, parse_redis_url


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("redis://cache", RedisAddress(host="cache")),
        ("redis://cache:6380/3", RedisAddress(host="cache", port=6380, database=3)),
        ("redis://[::1]:1", RedisAddress(host="::1", port=1)),
        ("rediss://ads%40team@cache", RedisAddress(host="cache", tls=True, user="ads@team")),
        ("unix:///run/redis.sock", RedisAddress(path="/run/redis.sock")),
        ("unix:///run/a%20b?db=2", RedisAddress(path="/run/a b", database=2)),
    ],
)
def test_a_url_names_an_address(url: str, address: RedisAddress) -> None:
    assert parse_redis_url(url) == address


@pytest.mark.parametrize(
    "url",
    ["", "cache:6379", "http://cache", "redis://", "redis:///0", "redis://cache?db=1",
     "redis://cache:port", "redis://cache:99999", "redis://cache#1", "unix://", "unix:///",
     "unix://host/run/redis.sock", "unix:///run/redis.sock?timeout=1", "redis://[::1"],
)  # fmt: skip
def test_what_names_no_address_is_refused_with_the_forms_that_do(url: str) -> None:
    with pytest.raises(ValueError, match=r"redis://\[user@\]host"):
        parse_redis_url(url)


@pytest.mark.parametrize("url", ["redis://cache/one", "redis://cache/-1", "unix:///s?db=x"])
def test_a_database_is_a_number(url: str) -> None:
    with pytest.raises(ValueError, match="database that is not a number"):
        parse_redis_url(url)


@pytest.mark.parametrize("url", ["redis://:hunter2@cache", "redis://u:hunter2@cache:nan/x"])
def test_a_password_is_refused_and_never_quoted(url: str) -> None:
    with pytest.raises(ValueError, match=r"ADREL_REDIS_PASSWORD|no URL") as told:
        parse_redis_url(url)
    assert "hunter2" not in str(told.value)
    assert told.value.__cause__ is None
