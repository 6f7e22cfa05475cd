"""What connects to the redis that the settings name; its library is imported only then."""

from __future__ import annotations

from service.shared_cache.address import parse_redis_url
from service.shared_cache.link import Connect
from service.startup_errors import InvalidSetting


def connect_to(url: str, password: str | None) -> Connect:
    """What makes connections to redis.

    Args:
        url: Of a form that `parse_redis_url` reads.
        password: For it, if it asks for one.

    Raises:
        InvalidSetting: The library is not installed.
    """
    try:
        from service.shared_cache.connector import RedisConnector  # noqa: PLC0415  # see above
    except ModuleNotFoundError as error:
        raise InvalidSetting(
            f"redis_url: no module {error.name}; it needs the extra: pip install '.[redis]'"
        ) from error
    return RedisConnector(parse_redis_url(url), password).connect
