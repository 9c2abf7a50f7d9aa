"""Requests to any schema registry with Confluent's API. Blocking; thread-safe."""

from __future__ import annotations

import base64
import json
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

import msgspec

from ottla.core.errors import ConfigError, OttlaError
from ottla.schema.errors import RegistryRefused, RegistryUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_RETRIES: Final = 3
_RETRY_AFTER_S: Final = 0.2
_OVERLOADED: Final = (429, 500, 502, 503, 504)

T = TypeVar("T")
Method = Literal["GET", "POST", "PUT", "DELETE"]


class ConnectionOptions(TypedDict, total=False):
    auth: tuple[str, str] | None
    """User and password; they may also be in the URL."""
    token: str | Callable[[], str] | None
    """A bearer token, or a function that returns the current one."""
    ca_file: str | None
    """CA certificates to trust, in PEM."""
    cert_file: str | None
    """Client certificate, in PEM."""
    key_file: str | None
    headers: Mapping[str, str]
    """Headers sent with every request."""
    timeout_s: float


@dataclass(frozen=True, slots=True)
class _Asked:
    method: Method
    path: tuple[object, ...]
    query: Mapping[str, object]
    body: Mapping[str, object] | None = None


class RegistryConnection:
    """Several URLs, separated by commas, are tried in turn."""

    def __init__(self, url: str, **options: Any) -> None:  # ConnectionOptions
        if unknown := options.keys() - ConnectionOptions.__annotations__.keys():
            raise ConfigError(f"unknown option {min(unknown)!r} of a schema registry")
        self._urls = [_parsed(each.strip()) for each in url.split(",") if each.strip()]
        if not self._urls:
            raise ConfigError("the URL of the schema registry is empty")
        self._timeout_s: float = options.get("timeout_s", 60.0)
        self._headers = {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE, **options.get("headers", {})}
        self._token = options.get("token")
        login = options.get("auth") or next((each.login for each in self._urls if each.login), None)
        if login is not None:
            self._headers["Authorization"] = "Basic " + base64.b64encode(":".join(login).encode()).decode()
        self._tls = self._context(options) if any(each.url.startswith("https") for each in self._urls) else None

    @property
    def url(self) -> str:
        return self._urls[0].url

    @staticmethod
    def _context(options: Mapping[str, Any]) -> ssl.SSLContext:
        file = options.get("ca_file")
        try:
            context = ssl.create_default_context(cafile=file)
            if file := options.get("cert_file"):
                context.load_cert_chain(file, options.get("key_file"))
        except (OSError, ssl.SSLError) as wrong:
            raise ConfigError(f"cannot load the certificates for the schema registry from {file}: {wrong}") from None
        return context

    def get(self, kind: type[T], *path: object, **query: object) -> T:
        return self._ask(_Asked("GET", path, query), kind)

    def post(self, kind: type[T], *path: object, body: Mapping[str, object], **query: object) -> T:
        return self._ask(_Asked("POST", path, query, body), kind)

    def put(self, *path: object, body: Mapping[str, object], **query: object) -> None:
        self._ask(_Asked("PUT", path, query, body), object)

    def delete(self, *path: object, **query: object) -> object:
        return self._ask(_Asked("DELETE", path, query), object)

    def _ask(self, asked: _Asked, kind: type[T]) -> T:
        """Send a request to each URL in turn; again to all if the registry is overloaded or restarting."""
        failed: RegistryUnavailable | None = None
        for attempt in range(_RETRIES):
            if attempt:
                time.sleep(_RETRY_AFTER_S * attempt)
            for each in self._urls:
                try:
                    return self._ask_one(each.url, asked, kind)
                except RegistryUnavailable as unavailable:
                    failed = unavailable
        raise failed or RegistryUnavailable("no schema registry")

    def _ask_one(self, base: str, asked: _Asked, kind: type[T]) -> T:
        url = "/".join((base, *(quote(str(step), safe="") for step in asked.path)))
        given = {key: _shown(value) for key, value in asked.query.items() if value}
        content = None if asked.body is None else json.dumps(asked.body).encode()
        headers = dict(self._headers)
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token() if callable(self._token) else self._token}"
        request = Request(f"{url}?{urlencode(given)}" if given else url, content, headers, method=asked.method)  # noqa: S310
        try:
            with urlopen(request, timeout=self._timeout_s, context=self._tls) as answer:  # noqa: S310 - http or https
                return msgspec.convert(json.loads(answer.read() or b"null"), kind)
        except HTTPError as refused:
            raise _refusal(refused) from None
        except (URLError, OSError) as failed:
            reason = getattr(failed, "reason", failed)
            raise RegistryUnavailable(f"cannot reach the schema registry at {base}: {reason}") from None
        except (ValueError, msgspec.ValidationError):
            raise OttlaError(f"{base} does not answer as a schema registry; its path may be missing") from None


@dataclass(frozen=True, slots=True)
class _Address:
    url: str
    login: tuple[str, str] | None


def _parsed(url: str) -> _Address:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"invalid registry URL {url!r} (use e.g. http://localhost:8080/schema-registry)")
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
    login = None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))
    return _Address(plain, login)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(refused: HTTPError) -> OttlaError:
    try:
        content = json.loads(refused.read())
        code, message = int(content["error_code"]), str(content["message"])
    except (ValueError, KeyError, TypeError):
        what = f"{refused.url}: HTTP {refused.code} {refused.reason}"
        return RegistryUnavailable(what) if refused.code in _OVERLOADED else OttlaError(what)
    if refused.code in _OVERLOADED:
        return RegistryUnavailable(f"the schema registry cannot answer now: {message} ({code})")
    return RegistryRefused(code, message)
