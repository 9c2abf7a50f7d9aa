"""All paths of the catalog, below `/iceberg`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.http.iceberg import handlers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ottla.http.iceberg.handlers import CatalogCall


class Served(NamedTuple):
    method: str
    path: str
    handle: Callable[[CatalogCall], Awaitable[Any]]
    summary: str
    query: tuple[str, ...] = ()
    answer: str = ""
    """The name of a schema in the API description."""


_NAMESPACES: Final = "/v1/namespaces"
_NAMESPACE: Final = _NAMESPACES + "/{namespace}"
_TABLES: Final = _NAMESPACE + "/tables"
_TABLE: Final = _TABLES + "/{table}"
_VIEWS: Final = _NAMESPACE + "/views"
_VIEW: Final = _VIEWS + "/{view}"
_PAGE: Final = ("pageToken", "pageSize")

READS: Final = (
    Served("GET", _NAMESPACES, handlers.list_namespaces, "Namespaces", ("parent", *_PAGE), "Namespaces"),
    Served("GET", _NAMESPACE, handlers.show_namespace, "One namespace", answer="Namespace"),
    Served("HEAD", _NAMESPACE, handlers.check_namespace, "Whether a namespace exists"),
    Served("GET", _TABLES, handlers.list_tables, "Tables whose topics the caller may describe", _PAGE, "Identifiers"),
    Served("GET", _TABLE, handlers.load_table, "A table and its metadata", ("snapshots",), "Table"),
    Served("HEAD", _TABLE, handlers.check_table, "Whether a table exists"),
    Served("GET", _TABLE + "/credentials", handlers.show_credentials, "Credentials: none", answer="Credentials"),
    Served("POST", _TABLE + "/metrics", handlers.take_metrics, "Accept a scan report, and drop it"),
    Served("GET", _VIEWS, handlers.list_views, "Views: none", _PAGE, "Identifiers"),
    Served("GET", _VIEW, handlers.no_view, "A view: not found"),
    Served("HEAD", _VIEW, handlers.no_view, "Whether a view exists"),
)

_WRITES: Final = (
    ("POST", _NAMESPACES),
    ("DELETE", _NAMESPACE),
    ("POST", _NAMESPACE + "/properties"),
    ("POST", _TABLES),
    ("POST", _TABLE),
    ("DELETE", _TABLE),
    ("POST", _NAMESPACE + "/register"),
    ("POST", "/v1/tables/rename"),
    ("POST", "/v1/transactions/commit"),
    ("POST", _VIEWS),
    ("POST", _VIEW),
    ("DELETE", _VIEW),
    ("POST", "/v1/views/rename"),
)


def endpoints() -> tuple[str, ...]:
    """The supported operations, as the config of the catalog lists them."""
    return tuple(f"{each.method} {each.path.replace('/v1/', '/v1/{prefix}/', 1)}" for each in READS)


CONFIG: Final = Served("GET", "/v1/config", handlers.show_config, "Supported operations", ("warehouse",), "Config")
DESCRIBED: Final = (CONFIG, *READS)
REFUSED: Final = tuple(Served(method, path, handlers.refuse, "Refused") for method, path in _WRITES)
