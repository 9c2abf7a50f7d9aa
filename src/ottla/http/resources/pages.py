"""The web console's files, from this package.

Their URLs contain a digest of their contents, so browsers cache them forever. The page itself is always revalidated.
"""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.responses import Response

from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.http.framework.endpoints import Call

_FOLDER: Final = Path(__file__).parents[1] / "console"
_PAGE: Final = "index.html"
_BASE: Final = b"console/"
_TYPES: Final[Mapping[str, str]] = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_FOR_GOOD: Final = "public, max-age=31536000, immutable"
# Only files of this host are loaded, text never becomes markup, and other sites may not frame the page.
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final[Mapping[str, str]] = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
}


class _File(NamedTuple):
    content: bytes
    media_type: str


class Console:
    def __init__(self, folder: Path = _FOLDER) -> None:
        files = {
            path.relative_to(folder).as_posix(): _File(path.read_bytes(), _TYPES[path.suffix])
            for path in sorted(folder.rglob("*"))
            if path.suffix in _TYPES
        }
        digest = hashlib.sha256()
        for name, file in files.items():
            digest.update(b"%d %b %d " % (len(name), name.encode(), len(file.content)))
            digest.update(file.content)
        self._digest = digest.hexdigest()[:16]
        page = files.pop(_PAGE)
        self._page = _File(page.content.replace(_BASE, b"console/%b/" % self._digest.encode()), page.media_type)
        self._files = files

    def endpoints(self) -> tuple[Endpoint, ...]:
        return (
            Endpoint("GET", "/", self._show_page, "The web console"),
            Endpoint("GET", "/console/{digest}/{name:path}", self._show_file, "A file of the console"),
        )

    async def _show_page(self, call: Call) -> Response:
        return _answer(call, self._page, "no-cache")

    async def _show_file(self, call: Call) -> Response:
        name = call.path("name")
        file = self._files.get(name)
        if file is None or call.path("digest") != self._digest:
            raise Problem(404, f"the console has no file {name!r}", hint="Reload the page: the broker was updated.")
        return _answer(call, file, _FOR_GOOD)


def _answer(call: Call, file: _File, caching: str) -> Response:
    tag = f'W/"{len(file.content):x}-{zlib.crc32(file.content):08x}"'
    headers = {**_HEADERS, "etag": tag, "cache-control": caching}
    if tag in call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)
