"""The door of a service that asks for keys: before it nothing of a request's body is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fastapi import Request, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from service.api.keys import ApiKeys
from service.errors import Unauthorized

Headers = Iterable[tuple[bytes, bytes]]


class KeyGuard:
    """An ASGI application before another one: lets by who has a key, or asks for an open path.

    Every path is closed that is not named: a new route cannot be forgotten here.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: ApiKeys,
        open_paths: frozenset[str],
        refuse: Callable[[Request, Unauthorized], Response],
    ) -> None:
        """Guard an application.

        Args:
            app: What is guarded.
            keys: Of the callers.
            open_paths: For everybody, such as probes.
            refuse: Counts a refusal and says it in the words of the path's clients.
        """
        self._app = app
        self._keys = keys
        self._open_paths = open_paths
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or go on."""
        if scope["type"] != "lifespan" and scope["path"] not in self._open_paths:
            shown = shown_keys(scope["headers"])
            if True not in [self._keys.holds(key) for key in shown]:
                response = self._refuse(Request(scope), Unauthorized(has_key=bool(shown)))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)


def shown_keys(headers: Headers) -> list[bytes]:
    """The first bearer token and the first X-API-Key of a request.

    Not all that there are: a caller must not choose how many are compared.

    Args:
        headers: As ASGI gives them, names in lower case.
    """
    bearer = own = None
    for name, value in headers:
        if name == b"authorization" and bearer is None:
            scheme, _, token = value.partition(b" ")
            if scheme.lower() == b"bearer":
                bearer = token.strip()
        elif name == b"x-api-key" and own is None:
            own = value.strip()
    return [key for key in (bearer, own) if key]
