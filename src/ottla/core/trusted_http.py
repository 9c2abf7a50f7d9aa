"""HTTP requests to services that receive secrets or provide keys: no plaintext, no redirects."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ottla.core.hosts import is_loopback

if TYPE_CHECKING:
    from urllib.request import BaseHandler, OpenerDirector


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Reject redirects: they could send a secret to another host, or trust its keys."""


def opener(*handlers: BaseHandler) -> OpenerDirector:
    return urllib.request.build_opener(_NoRedirects, *handlers)


def is_trusted(address: str) -> bool:
    """Whether requests are protected: https, or http on this machine."""
    found = urlsplit(address)
    if found.scheme == "https":
        return bool(found.hostname)
    return found.scheme == "http" and is_loopback(found.hostname or "")
