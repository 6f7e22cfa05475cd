"""The score route of one service, and the requests to it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping

import httpx

from service.client.affinity import AFFINITY_HEADER
from service.client.arguments import instance

SCORE_PATH = b"/v1/score"

# An answer whose encoding we did not ask for could be small on the wire and huge when unpacked.
OWN_HEADERS = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
NOT_THE_CALLERS = (
    "host",
    "content-type",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "connection",
    AFFINITY_HEADER.lower(),
)

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
HEADER_VALUE = re.compile(r"([\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?)?")  # 5.5


class BodyWhenSent(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A request's body that is made when it is sent; either client can send it."""

    def __init__(self, body: Callable[[], bytes]) -> None:
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        yield self._body()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._body()


class Endpoint:
    """Makes the requests to one service's score route."""

    def __init__(self, base_url: str, headers: Mapping[str, str] | None) -> None:
        """Check what the caller gave.

        Raises:
            TypeError: A URL or a header that is no text.
            ValueError: A URL or a header that cannot work; says what is wrong with it.
        """
        base = checked_base_url(base_url)
        self._url = base.copy_with(raw_path=base.raw_path.rstrip(b"/") + SCORE_PATH)
        self._headers = httpx.Headers(
            {
                "Host": self._url.netloc.decode("ascii"),
                "User-Agent": "adrel-client",
                **_checked_headers(headers),
                **OWN_HEADERS,
            }
        )

    def request(
        self, body: Callable[[], bytes], body_bytes: int, affinity_key: str
    ) -> httpx.Request:
        """A request whose body is made when it is sent, and will have `body_bytes`."""
        request = httpx.Request("POST", self._url, headers=self._headers, stream=BodyWhenSent(body))
        request.headers["Content-Length"] = str(body_bytes)
        request.headers[AFFINITY_HEADER] = affinity_key
        return request


def checked_base_url(base_url: str) -> httpx.URL:
    """The service's address, under which its routes lie.

    Raises:
        TypeError: No text.
        ValueError: Not an http or https URL of a host, a port and a path alone.
    """
    takes = "takes a URL such as http://127.0.0.1:8000"
    try:
        url = httpx.URL(instance("base_url", base_url, str))
    except httpx.InvalidURL as error:
        raise ValueError(f"base_url: {takes}, got {base_url!r}: {error}") from error
    if url.userinfo:
        raise ValueError("base_url: takes no user and password; send an Authorization header")
    _check_host(base_url, url)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"base_url: must be http://host or https://host, got {base_url!r}")
    if url.port is not None and not 1 <= url.port <= 65_535:
        raise ValueError(f"base_url: takes a port from 1 to 65535, got {url.port}")
    if "?" in base_url or "#" in base_url:
        raise ValueError(f"base_url: takes no query and no fragment, got {base_url!r}")
    return url


def _check_host(base_url: str, url: httpx.URL) -> None:
    """Refuse a name that the resolver would not even ask for.

    Raises:
        ValueError: An empty or too long part between dots, or one that is no coded name.
    """
    try:
        _ = url.host  # decoded here, where it is an international name
        url.raw_host.decode("ascii").encode("idna")  # as the resolver does
    except UnicodeError as error:
        raise ValueError(f"base_url: {base_url!r} names no host: {error}") from error


def _checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    if headers is None:
        return {}
    checked = {}
    if not isinstance(headers, Mapping):
        raise TypeError(f"headers: takes names with their values, got {type(headers).__name__}")
    for name, value in headers.items():
        if not HEADER_NAME.fullmatch(instance("headers", name, str)):
            raise ValueError(f"headers: {name!r} is no name of a header")
        if name.lower() in NOT_THE_CALLERS:
            raise ValueError(f"headers: {name!r} is the client's own")
        # Values are keys, so no message holds one.
        if not isinstance(value, str):
            raise TypeError(f"headers[{name!r}]: takes str, got {type(value).__name__}")
        if not HEADER_VALUE.fullmatch(value):
            takes = "takes printable ASCII characters, with no blank at either end"
            raise ValueError(f"headers[{name!r}]: {takes}")
        # As one case, so that it replaces a default instead of standing beside it.
        checked[name.title()] = value
    return checked
