"""Sockets of the addresses that the service listens on."""

from __future__ import annotations

import socket

from service.startup_errors import CannotListen, address_of

BACKLOG = 2048  # as uvicorn has it


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
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
        except OSError:
            bound.close()
            raise
    except OSError as error:
        raise CannotListen(host, port, error) from error
    return bound


def start_listening(bound: socket.socket) -> None:
    """Take callers in: they wait until somebody accepts them. Again is as good as once.

    Two sockets may be bound to one address as long as neither listens, so this is where a second
    start at the same time is found out.

    Raises:
        CannotListen: Another socket listens on the address by now.
    """
    try:
        bound.listen(BACKLOG)
    except OSError as error:
        host, port = bound.getsockname()[:2]
        raise CannotListen(host, port, error) from error


def url_of(bound: socket.socket) -> str:
    """Where the socket can be reached."""
    host, port = bound.getsockname()[:2]
    return f"http://{address_of(host, port)}"
