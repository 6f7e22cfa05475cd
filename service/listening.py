"""Sockets of the addresses that the service listens on."""

from __future__ import annotations

import socket

from service.startup_errors import CannotListen


def bind(host: str, port: int) -> socket.socket:
    """A socket on the address, bound but not yet listening: callers are refused until then.

    Raises:
        CannotListen: The address is in use, or not one of this machine.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        raise CannotListen(host, port, error) from error
    return bound


def url_of(bound: socket.socket) -> str:
    """Where the socket can be reached."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
