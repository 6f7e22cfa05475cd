"""Where the service is, and how connections to it are kept."""

from __future__ import annotations

import httpx

SCORE_PATH = "v1/score"
JSON_HEADERS = {"Content-Type": "application/json", "User-Agent": "adrel-client"}

MAX_CONNECTIONS = 100
MAX_IN_FLIGHT = 16  # of the asynchronous client, whose pool is slow when it is full

# Shorter than the service keeps idle connections (75 s) and than common load balancers do (60 s),
# so that a request is seldom sent into a connection that is being closed.
KEEP_ALIVE_S = 50


def checked_base_url(base_url: str) -> httpx.URL:
    """The service's address, under which its routes lie.

    Raises:
        ValueError: Not an http or https URL with a host.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"base_url: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"base_url: must be http://host or https://host, got {base_url!r}")
    return url
