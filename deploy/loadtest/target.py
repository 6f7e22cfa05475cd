"""Which service is put under load: whether it may be, and what it says of itself."""

from __future__ import annotations

import http.client
import ipaddress
import json
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus
from typing import Any

from deploy.loadtest.locust_options import KEY_VARIABLE

MODELS_ROUTE = "/v1/models"
ANSWER_TIMEOUT_S = 10.0


class NoTarget(Exception):
    """There is no service that could be, or may be, put under load; says why."""


def checked_url(url: str, *, host_is_mine: bool) -> str:
    """`url` without a slash at its end.

    Args:
        url: Of the service: scheme, host and port.
        host_is_mine: Whether the caller said that another machine may be put under load.

    Raises:
        NoTarget: It is no such URL, or names another machine without leave.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise NoTarget(f"{url!r} is not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not host:
        raise NoTarget(f"{url!r} is not a URL like http://127.0.0.1:8000")
    if parts.path.strip("/") or parts.query or parts.fragment:
        raise NoTarget(f"{url!r} has more than scheme, host and port: the load test adds the path")
    if not host_is_mine and not is_loopback(host):
        raise NoTarget(
            f"{host} is not this machine, and load can put it out of service: "
            "if it is yours to load, say so with --host-is-mine"
        )
    return url.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine for certain. Names are not looked up."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def key_headers(api_key: str | None) -> dict[str, str]:
    """The header that carries a key, where there is one."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def serving_model(url: str, api_key: str | None) -> dict[str, Any]:
    """Name, version and more of the model that serves, as `GET /v1/models` has it.

    Raises:
        NoTarget: Nobody answers, or not an adrel.
    """
    request = urllib.request.Request(url + MODELS_ROUTE, headers=key_headers(api_key))  # noqa: S310  # checked_url lets http and https through alone
    try:
        with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as answer:  # noqa: S310  # as above
            serving = json.load(answer)["serving"]
            return {"name": str(serving["name"]), "version": str(serving["version"])}
    except urllib.error.HTTPError as error:
        error.close()
        told = str(error)
        if error.code == HTTPStatus.UNAUTHORIZED:
            told += f"; {_about_key(api_key)}"
        raise NoTarget(f"GET {url}{MODELS_ROUTE}: {told}") from error
    except (OSError, http.client.HTTPException) as error:
        raise NoTarget(f"GET {url}{MODELS_ROUTE}: {error}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise NoTarget(f"GET {url}{MODELS_ROUTE}: not an answer of adrel") from error


def _about_key(api_key: str | None) -> str:
    if api_key:
        return f"the service does not know the key in {KEY_VARIABLE}"
    return f"the service wants a key, in the variable {KEY_VARIABLE}"
