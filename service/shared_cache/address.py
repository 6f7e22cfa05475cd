"""Where the redis is, read from its URL."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

DEFAULT_PORT = 6379
SCHEMES = ("redis", "rediss", "unix")
SHAPES = "redis://[user@]host[:port][/database], rediss://... or unix:///path[?db=database]"


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """Where to connect, and as whom.

    Attributes:
        host: Of TCP; empty for a Unix socket.
        port: Of TCP.
        path: Of a Unix socket; empty for TCP.
        tls: Over TLS, with the certificate checked.
        user: For AUTH; empty is redis' own default user.
        database: Number of it.
    """

    host: str = ""
    port: int = DEFAULT_PORT
    path: str = ""
    tls: bool = False
    user: str = ""
    database: int = 0


def parse_redis_url(url: str) -> RedisAddress:
    """The address that a URL names, in the forms of redis' own clients.

    Raises:
        ValueError: It names none, or has a password; the message never quotes it.

    Source: iana.org/assignments/uri-schemes/prov/redis and .../rediss; `unix` as in redis-py.
    """
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:  # what it says may quote the password
        raise ValueError(f"is no URL of the form {SHAPES}") from None
    if parts.password is not None:
        raise ValueError("must have no password, since URLs are shown: set ADREL_REDIS_PASSWORD")
    if parts.scheme not in SCHEMES or parts.fragment:
        raise ValueError(f"is no URL of the form {SHAPES}")
    user = unquote(parts.username or "")
    if parts.scheme == "unix":
        if host or port or not parts.path.strip("/"):
            raise ValueError(f"is no URL of the form {SHAPES}")
        return RedisAddress(path=unquote(parts.path), user=user, database=_database_of(parts))
    if not host or parts.query:
        raise ValueError(f"is no URL of the form {SHAPES}")
    return RedisAddress(
        host=host,
        port=port if port is not None else DEFAULT_PORT,
        tls=parts.scheme == "rediss",
        user=user,
        database=_number(parts.path.removeprefix("/")),
    )


def _database_of(parts: SplitResult) -> int:
    name, _, value = parts.query.partition("=")
    if name not in ("", "db"):
        raise ValueError(f"is no URL of the form {SHAPES}")
    return _number(value)


def _number(text: str) -> int:
    if not text:
        return 0
    if not (text.isascii() and text.isdigit()):
        raise ValueError("names a database that is not a number")
    return int(text)
