"""A client of any schema registry with Confluent's API, for the commands."""

from __future__ import annotations

import base64
import json
import ssl
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT_S: Final = 60
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class RegistryRefused(OttlaError):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code


class Registry:
    def __init__(self, url: str, ca_file: str | None = None) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"invalid registry URL {url!r} (use e.g. http://localhost:8080/schema-registry)")
        self._url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
        self._headers = {"Accept": _MEDIA_TYPE, "Content-Type": _MEDIA_TYPE}
        if parts.username is not None:
            login = base64.b64encode(f"{parts.username}:{parts.password or ''}".encode()).decode()
            self._headers["Authorization"] = f"Basic {login}"
        self._tls = ssl.create_default_context(cafile=ca_file) if parts.scheme == "https" else None

    def get(self, *path: object, **query: object) -> Any:  # noqa: ANN401 - any JSON
        return self._ask("GET", path, query)

    def post(self, *path: object, body: Mapping[str, object], **query: object) -> Any:  # noqa: ANN401 - any JSON
        return self._ask("POST", path, query, body)

    def put(self, *path: object, body: Mapping[str, object], **query: object) -> Any:  # noqa: ANN401 - any JSON
        return self._ask("PUT", path, query, body)

    def delete(self, *path: object, **query: object) -> Any:  # noqa: ANN401 - any JSON
        return self._ask("DELETE", path, query)

    def _ask(
        self,
        method: str,
        path: tuple[object, ...],
        query: Mapping[str, object],
        body: Mapping[str, object] | None = None,
    ) -> Any:  # noqa: ANN401 - any JSON
        url = "/".join((self._url, *(quote(str(step), safe="") for step in path)))
        given = {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items() if value}
        content = None if body is None else json.dumps(body).encode()
        request = Request(f"{url}?{urlencode(given)}" if given else url, content, self._headers, method=method)  # noqa: S310
        try:
            with urlopen(request, timeout=_TIMEOUT_S, context=self._tls) as answer:  # noqa: S310 - http or https
                return json.loads(answer.read() or b"null")
        except HTTPError as refused:
            raise _refusal(refused) from None
        except (URLError, OSError) as failed:
            raise OttlaError(
                f"cannot reach the schema registry at {self._url}: {getattr(failed, 'reason', failed)}"
            ) from None
        except ValueError:
            raise OttlaError(f"{self._url} does not answer as a schema registry; its path may be missing") from None


def _refusal(refused: HTTPError) -> OttlaError:
    try:
        content = json.loads(refused.read())
        return RegistryRefused(int(content["error_code"]), str(content["message"]))
    except (ValueError, KeyError, TypeError):
        return OttlaError(f"{refused.url}: HTTP {refused.code} {refused.reason}")
