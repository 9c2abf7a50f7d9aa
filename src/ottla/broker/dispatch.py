"""One table says what is served; everything else here follows from it."""

from __future__ import annotations

import asyncio
from importlib import import_module
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.broker.answers import normalized
from ottla.broker.configs.definitions import broker_definitions
from ottla.broker.context import Context
from ottla.broker.metrics import ApiStats
from ottla.core.errors import ErrorCode, ProtocolError
from ottla.wire import apis
from ottla.wire.apis import API_VERSIONS, APIS, request_type
from ottla.wire.codec import decode_request, encode_response
from ottla.wire.declare import Response
from ottla.wire.header import RequestHeader, read_request_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from ottla.broker.answers import Answer, Handler
    from ottla.broker.broker import Broker
    from ottla.net.connection import Connection
    from ottla.wire.apis import Api
    from ottla.wire.declare import AnyBytes


class Route(NamedTuple):
    """Where an API's handler is. It is imported with the first request for it, or soon after the start."""

    module: str
    function: str


def _in(module: str, function: str) -> Route:
    return Route(f"ottla.broker.handlers.{module}", function)


ROUTES: Final[Mapping[int, Route]] = {  # ApiVersions is computed from this table
    apis.PRODUCE.key: _in("produce", "produce"),
    apis.FETCH.key: _in("fetch", "fetch"),
    apis.LIST_OFFSETS.key: _in("offsets", "list_offsets"),
    apis.METADATA.key: _in("metadata", "metadata"),
    apis.OFFSET_COMMIT.key: _in("group_offsets", "offset_commit"),
    apis.OFFSET_FETCH.key: _in("group_offsets", "offset_fetch"),
    apis.FIND_COORDINATOR.key: _in("groups", "find_coordinator"),
    apis.JOIN_GROUP.key: _in("groups", "join_group"),
    apis.HEARTBEAT.key: _in("groups", "heartbeat"),
    apis.LEAVE_GROUP.key: _in("groups", "leave_group"),
    apis.SYNC_GROUP.key: _in("groups", "sync_group"),
    apis.DESCRIBE_GROUPS.key: _in("groups", "describe_groups"),
    apis.LIST_GROUPS.key: _in("groups", "list_groups"),
    apis.DELETE_GROUPS.key: _in("groups", "delete_groups"),
    apis.CONSUMER_GROUP_HEARTBEAT.key: _in("consumer_groups", "consumer_group_heartbeat"),
    apis.CONSUMER_GROUP_DESCRIBE.key: _in("consumer_groups", "consumer_group_describe"),
    apis.OFFSET_DELETE.key: _in("group_offsets", "offset_delete"),
    apis.SASL_HANDSHAKE.key: _in("sasl", "sasl_handshake"),
    apis.API_VERSIONS.key: _in("api_versions", "api_versions"),
    apis.CREATE_TOPICS.key: _in("create_topics", "create_topics"),
    apis.DELETE_TOPICS.key: _in("delete_topics", "delete_topics"),
    apis.DELETE_RECORDS.key: _in("delete_records", "delete_records"),
    apis.INIT_PRODUCER_ID.key: _in("transactions", "init_producer_id"),
    apis.ADD_PARTITIONS_TO_TXN.key: _in("transactions", "add_partitions_to_txn"),
    apis.ADD_OFFSETS_TO_TXN.key: _in("transactions", "add_offsets_to_txn"),
    apis.END_TXN.key: _in("transactions", "end_txn"),
    apis.WRITE_TXN_MARKERS.key: _in("transaction_admin", "write_txn_markers"),
    apis.TXN_OFFSET_COMMIT.key: _in("txn_offsets", "txn_offset_commit"),
    apis.DESCRIBE_PRODUCERS.key: _in("transaction_admin", "describe_producers"),
    apis.DESCRIBE_TRANSACTIONS.key: _in("transaction_admin", "describe_transactions"),
    apis.LIST_TRANSACTIONS.key: _in("transaction_admin", "list_transactions"),
    apis.OFFSET_FOR_LEADER_EPOCH.key: _in("offsets", "offset_for_leader_epoch"),
    apis.DESCRIBE_ACLS.key: _in("acls", "describe_acls"),
    apis.CREATE_ACLS.key: _in("acls", "create_acls"),
    apis.DELETE_ACLS.key: _in("acls", "delete_acls"),
    apis.DESCRIBE_CONFIGS.key: _in("configs", "describe_configs"),
    apis.ALTER_CONFIGS.key: _in("configs", "alter_configs"),
    apis.DESCRIBE_LOG_DIRS.key: _in("log_dirs", "describe_log_dirs"),
    apis.SASL_AUTHENTICATE.key: _in("sasl", "sasl_authenticate"),
    apis.CREATE_PARTITIONS.key: _in("create_topics", "create_partitions"),
    apis.ELECT_LEADERS.key: _in("reassignments", "elect_leaders"),
    apis.INCREMENTAL_ALTER_CONFIGS.key: _in("configs", "incremental_alter_configs"),
    apis.ALTER_PARTITION_REASSIGNMENTS.key: _in("reassignments", "alter_partition_reassignments"),
    apis.LIST_PARTITION_REASSIGNMENTS.key: _in("reassignments", "list_partition_reassignments"),
    apis.DESCRIBE_CLIENT_QUOTAS.key: _in("quotas", "describe_client_quotas"),
    apis.ALTER_CLIENT_QUOTAS.key: _in("quotas", "alter_client_quotas"),
    apis.DESCRIBE_USER_SCRAM_CREDENTIALS.key: _in("users", "describe_user_scram_credentials"),
    apis.ALTER_USER_SCRAM_CREDENTIALS.key: _in("users", "alter_user_scram_credentials"),
    apis.DESCRIBE_CLUSTER.key: _in("cluster", "describe_cluster"),
    apis.SHARE_GROUP_HEARTBEAT.key: _in("share_groups", "share_group_heartbeat"),
    apis.SHARE_GROUP_DESCRIBE.key: _in("share_groups", "share_group_describe"),
    apis.SHARE_FETCH.key: _in("share_fetch", "share_fetch"),
    apis.SHARE_ACKNOWLEDGE.key: _in("share_fetch", "share_acknowledge"),
    apis.INITIALIZE_SHARE_GROUP_STATE.key: _in("share_state", "initialize_share_group_state"),
    apis.READ_SHARE_GROUP_STATE.key: _in("share_state", "read_share_group_state"),
    apis.WRITE_SHARE_GROUP_STATE.key: _in("share_state", "write_share_group_state"),
    apis.DELETE_SHARE_GROUP_STATE.key: _in("share_state", "delete_share_group_state"),
    apis.READ_SHARE_GROUP_STATE_SUMMARY.key: _in("share_state", "read_share_group_state_summary"),
    apis.DESCRIBE_SHARE_GROUP_OFFSETS.key: _in("share_groups", "describe_share_group_offsets"),
    apis.ALTER_SHARE_GROUP_OFFSETS.key: _in("share_groups", "alter_share_group_offsets"),
    apis.DELETE_SHARE_GROUP_OFFSETS.key: _in("share_groups", "delete_share_group_offsets"),
    apis.LIST_CONFIG_RESOURCES.key: _in("configs", "list_config_resources"),
    apis.DESCRIBE_TOPIC_PARTITIONS.key: _in("topic_partitions", "describe_topic_partitions"),
}

_LOADED_LATER: Final = (
    "ottla.broker.compactor",
    "ottla.broker.share.service",
    "ottla.broker.transaction_coordinator",
    "ottla.share.settings",
)
"""What handlers, and the broker, import when they first need it."""
_NO_ROUTE: Final = "%s is not served"


def served_apis() -> tuple[ApiVersion, ...]:
    return tuple(
        ApiVersion(api_key=key, min_version=apis.APIS[key].advertised_from, max_version=apis.APIS[key].last)
        for key in sorted(ROUTES)
    )


class _Served:
    """An API that has been asked for: its handler, and what is counted of it."""

    __slots__ = ("handler", "stats")

    def __init__(self, api: Api, handler: Handler) -> None:
        self.handler = handler
        self.stats = ApiStats(api)


class Dispatcher:
    """Turns a frame into an answer."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._served: dict[int, _Served] = {}
        self._handlers: dict[int, Handler] = {}
        self.around: Callable[[Api, Handler], Handler] | None = None
        """What else goes around every handler; `reload_handlers` after it is set."""

    @property
    def stats(self) -> list[ApiStats]:
        return [served.stats for served in self._served.values()]

    def refused(self, api: Api, code: int) -> None:
        """Count a refusal that is not looked for in the answer."""
        if (served := self._served.get(api.key)) is not None:
            served.stats.refused(code)

    def answer(
        self, connection: Connection, frame: memoryview
    ) -> list[AnyBytes] | Awaitable[list[AnyBytes] | None] | None:
        began_ns = perf_counter_ns()
        header = read_request_header(frame)
        api = header.api
        if not api.first <= header.version <= api.last:
            return _refuse_version(header)
        served = self._served.get(api.key) or self._serve(api)
        stats = served.stats
        stats.bytes_in += len(frame)
        request = decode_request(header, frame)
        response = served.handler(self._broker, request, Context(header, connection))
        buffers = None
        if isinstance(response, Response):
            buffers = encode_response(header, response)
            stats.bytes_out += len(buffers[0])
            if stats.finds_errors:
                stats.bytes_out += sum(map(len, buffers[1:]))
                stats.note_errors(response)
        elif response is not None:
            return _later(header, response, stats, began_ns)
        # As `Histogram.add` does, without the call: every produce request passes here.
        elapsed_ns = perf_counter_ns() - began_ns
        stats.by_bits[elapsed_ns.bit_length()] += 1
        stats.total_ns += elapsed_ns
        return buffers

    def closed(self, connection: Connection) -> None:
        self._broker.connection_closed(connection)

    async def load_all(self) -> None:
        """Import what no request has asked for yet: later there may be no file descriptor left to read it with.

        One by one, so that requests need not wait.
        """
        for key in ROUTES:
            if key not in self._served:
                self._serve(APIS[key])
            request_type(APIS[key])
            await asyncio.sleep(0)
        for module in _LOADED_LATER:
            import_module(module)
            await asyncio.sleep(0)
        broker_definitions()

    def _serve(self, api: Api) -> _Served:
        served = self._served[api.key] = _Served(api, self.handler(api))
        return served

    def handler(self, api: Api) -> Handler:
        """What answers this API, whichever door asks."""
        found = self._handlers.get(api.key)
        if found is None:
            found = self._broker.security.around(api, self.unguarded(api))
            tracing = self._broker.tracing
            found = found if tracing is None else tracing.traced(api, found)
            self._handlers[api.key] = found = found if self.around is None else self.around(api, found)
        return found

    def unguarded(self, api: Api) -> Handler:
        """The same without ACLs, quotas and audit, for requests of the broker itself."""
        found = _load_handler(api)
        if self._broker.settling is not None:
            found = self._broker.settling.around(api, found)
        if self._broker.replication is not None:
            from ottla.broker.forwarding import forwarding

            found = forwarding(api, found)
        return found

    def reload_handlers(self) -> None:
        """What goes around them has changed."""
        self._handlers.clear()
        for key, served in self._served.items():
            served.handler = self.handler(APIS[key])


async def _later(
    header: RequestHeader, response: Coroutine[object, object, Answer], stats: ApiStats, began_ns: int
) -> list[AnyBytes] | None:
    answer = await response
    buffers = None
    if answer is not None:
        buffers = encode_response(header, answer)
        stats.bytes_out += sum(map(len, buffers))
        if stats.finds_errors:
            stats.note_errors(answer)
    stats.add(perf_counter_ns() - began_ns)
    return buffers


def _load_handler(api: Api) -> Handler:
    route = ROUTES.get(api.key)
    if route is None:
        raise ProtocolError(_NO_ROUTE % api)
    return normalized(getattr(import_module(route.module), route.function))


def _refuse_version(header: RequestHeader) -> list[AnyBytes]:
    """A client from the future is told what there is (KIP-511); any other should have asked first."""
    if header.api.key != API_VERSIONS.key:
        raise ProtocolError(f"{header.api} is not served in version {header.version}")
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=served_apis())
    return encode_response(header, refusal, version=0)
