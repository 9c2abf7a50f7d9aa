"""The operations of the catalog.

A table is listed for users who may describe its topic, and loaded by users who may read it.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from starlette.responses import Response

from ottla.core.security import AclOperation, ResourceType
from ottla.http.iceberg.errors import CatalogError, NoSuchNamespace, NoSuchTable, NoSuchView
from ottla.http.iceberg.lake import topic_in, with_referenced_snapshots
from ottla.lake.names import table_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.http.framework.endpoints import Call
    from ottla.http.iceberg.lake import Lake

T = TypeVar("T")
Json = dict[str, Any]

_JSON: Final = "application/json"
_SEPARATOR: Final = "\x1f"
_MAX_REPORT_BYTES: Final = 1 << 20
_READ_ONLY: Final = "tables of topics are read-only in this catalog; ottla lake writes them"


class CatalogCall:
    """One request: its parameters, and what its sender may see."""

    def __init__(self, call: Call, lake: Lake, endpoints: tuple[str, ...]) -> None:
        self.call = call
        self.lake = lake
        self.endpoints = endpoints

    @property
    def query(self) -> dict[str, str]:
        return dict(self.call.request.query_params)

    def may(self, operation: AclOperation, topic: str) -> bool:
        return self.call.may(operation, ResourceType.TOPIC, topic)

    async def namespace(self) -> str:
        name = self.call.path("namespace")
        if name not in await asyncio.to_thread(self.lake.namespaces):
            raise NoSuchNamespace(name.replace(_SEPARATOR, "."))
        return name

    async def visible(self, namespace: str) -> list[str]:
        """The tables that the sender may describe, in order."""
        tables = await asyncio.to_thread(self.lake.tables, namespace)
        live = {table_of(name).table: name for name in self.call.broker.topics.by_name}
        # The topics of the others are deleted, so that only the tables know their names.
        deleted = [table for table in tables if table not in live]
        topics = live | await asyncio.to_thread(self.lake.topics, namespace, deleted)
        return [table for table in tables if self.may(AclOperation.DESCRIBE, topics.get(table, table))]

    async def load(self, operation: AclOperation = AclOperation.READ) -> tuple[str, bytes]:
        """The metadata of the table in the path, and where it is from. An error unless the operation is allowed."""
        namespace, table = self.call.path("namespace"), self.call.path("table")
        found = await asyncio.to_thread(self.lake.load, namespace, table)
        if found is None:
            raise NoSuchTable(namespace.replace(_SEPARATOR, "."), table)
        location, metadata = found
        topic = await asyncio.to_thread(topic_in, metadata, table)
        if not self.may(AclOperation.DESCRIBE, topic):
            raise NoSuchTable(namespace, table)
        self.call.check(operation, ResourceType.TOPIC, topic)
        return location, metadata

    def page(self, found: list[T], name: Callable[[T], str]) -> tuple[list[T], str | None]:
        """The requested page and the token of the next one. Clients that ask for no page get everything."""
        query = self.query
        after, size = query.get("pageToken", ""), query.get("pageSize", "")
        if not after and not size:
            return found, None
        if size and not (size.isascii() and size.isdecimal() and int(size[:9]) > 0):
            raise CatalogError(400, f"pageSize must be a positive integer, got {size!r}")
        rest = [each for each in found if not after or name(each) > after]
        most = int(size[:9]) if size else len(rest)
        page = rest[:most]
        return page, name(page[-1]) if len(rest) > most else None


async def show_config(call: CatalogCall) -> Json:
    await asyncio.to_thread(call.lake.namespaces)  # an error if there are no tables
    return {"defaults": {}, "overrides": {}, "endpoints": call.endpoints}


async def list_namespaces(call: CatalogCall) -> Json:
    names = await asyncio.to_thread(call.lake.namespaces)
    if parent := call.query.get("parent"):
        if parent not in names:
            raise NoSuchNamespace(parent.replace(_SEPARATOR, "."))
        names = []
    page, following = call.page(names, str)
    return {"namespaces": [[name] for name in page], "next-page-token": following}


async def show_namespace(call: CatalogCall) -> Json:
    return {"namespace": [await call.namespace()], "properties": {}}


async def list_tables(call: CatalogCall) -> Json:
    namespace = await call.namespace()
    page, following = call.page(await call.visible(namespace), str)
    identifiers = [{"namespace": [namespace], "name": table} for table in page]
    return {"identifiers": identifiers, "next-page-token": following}


async def load_table(call: CatalogCall) -> Response:
    location, metadata = await call.load()
    which = call.query.get("snapshots") or "all"
    if which not in ("all", "refs"):
        raise CatalogError(400, f"snapshots must be all or refs, got {which!r}")
    tag = f'"{zlib.crc32(location.encode()):08x}-{len(metadata):x}-{which}"'
    if tag in call.call.request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers={"etag": tag})
    if which == "refs":
        metadata = await asyncio.to_thread(with_referenced_snapshots, metadata)
    content = b'{"metadata-location":%b,"metadata":%b,"config":{}}' % (msgspec.json.encode(location), metadata)
    return Response(content, headers={"etag": tag}, media_type=_JSON)


async def show_credentials(call: CatalogCall) -> Json:
    await call.load()
    return {"storage-credentials": []}


async def check_namespace(call: CatalogCall) -> Response:
    await call.namespace()
    return Response(status_code=204)


async def check_table(call: CatalogCall) -> Response:
    await call.load(AclOperation.DESCRIBE)
    return Response(status_code=204)


async def take_metrics(call: CatalogCall) -> Response:
    """Reports of scans: nothing is done with them."""
    with call.call.receive(_MAX_REPORT_BYTES) as body:
        await body.read_all(_MAX_REPORT_BYTES)
    return Response(status_code=204)


async def list_views(call: CatalogCall) -> Json:
    await call.namespace()
    return {"identifiers": [], "next-page-token": None}


async def no_view(call: CatalogCall) -> Response:
    raise NoSuchView(await call.namespace(), call.call.path("view"))


async def refuse(_: CatalogCall) -> Response:
    raise CatalogError(403, _READ_ONLY)
