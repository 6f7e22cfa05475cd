"""`GET /`: a page to try the model out by hand. Three kinds of static files and nothing else.

The page may talk to this server alone: its Content-Security-Policy allows no other origin, no
inline script and no inline style, so what an ad says can never be run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from fastapi import APIRouter, Request, Response

FOLDER = Path(__file__).parent / "playground"
PAGE = "index.html"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",  # kept, but asked about: a new release shows at once
}

router = APIRouter(include_in_schema=False)


def _add(path: str, file: Path) -> None:
    content, media_type = file.read_bytes(), MEDIA_TYPES[file.suffix]
    etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**HEADERS, "ETag": etag}

    async def serve(request: Request) -> Response:
        if _is_current(request.headers.get("If-None-Match", ""), etag):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    router.add_api_route(path, serve, methods=["GET"])


def _is_current(if_none_match: str, etag: str) -> bool:
    """Whether the caller has this version already (RFC 9110, section 13.1.2: weak comparison)."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or "*" in tags


FILES: Mapping[str, Path] = {"/": FOLDER / PAGE} | {
    f"/playground/{file.name}": file
    for suffix in (".css", ".js")
    for file in sorted(FOLDER.glob(f"*{suffix}"))
}
"""What is served, by path."""

PATHS = frozenset(FILES)

for _path, _file in FILES.items():
    _add(_path, _file)
