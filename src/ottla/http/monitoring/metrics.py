"""`/metrics`, in OpenMetrics text: counters, and values computed for each request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import StreamingResponse

from ottla import __version__
from ottla.broker.interfaces.in_process_requests import NodeAway
from ottla.broker.interfaces.partition_facts import opened
from ottla.broker.interfaces.protocol_servers import ShardStats
from ottla.broker.upkeep.disk_space import space_of
from ottla.core.security import AclOperation, ResourceType
from ottla.http.consumer_groups.groups import lag_of
from ottla.http.consumer_groups.offsets import committed_offsets
from ottla.http.framework.endpoints import Endpoint, others
from ottla.http.monitoring.openmetrics import Family, counter, gauge, histogram, labels_text
from ottla.http.monitoring.pipeline_metrics import pipeline_families
from ottla.wire.messages.list_groups import ListGroupsRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from starlette.responses import Response

    from ottla.broker.broker import Broker
    from ottla.broker.partition import Partition
    from ottla.broker.schemas.store import Store
    from ottla.http.framework.endpoints import Call
    from ottla.http.framework.stats import HttpStats

OPENMETRICS: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"


async def metrics(call: Call) -> Response:
    call.check_cluster()
    return StreamingResponse(_text(call), media_type=OPENMETRICS)


async def _text(call: Call) -> AsyncIterator[bytes]:
    broker = call.broker
    for family in (*_broker(broker), *_requests(broker), *_connections(broker), *_http(call.http_state.stats)):
        yield family.text()
    for family in _shards(ShardStats() if broker.shard_server is None else broker.shard_server.stats):
        yield family.text()
    if "schemas" in vars(broker):
        for family in _registry(broker.schemas):
            yield family.text()
    for family in await _logs(broker):
        yield family.text()
        await others()
    for family in (*await _groups(call), *await pipeline_families(call)):
        yield family.text()
    if broker.table_writer is not None:
        from ottla.http.monitoring.table_metrics import table_families

        for family in await table_families(broker, broker.table_writer):
            yield family.text()
    yield b"# EOF\n"


def _broker(broker: Broker) -> Iterator[Family]:
    info = gauge("ottla_broker_info", "The broker and its version.")
    info.add(1, version=__version__, node_id=str(broker.config.node_id), cluster_id=broker.cluster_id)
    yield info
    leaderless = gauge("ottla_partitions_without_leader", "Partitions of the cluster without a leader.")
    found = [] if broker.replication is None else [each.reason for each in broker.replication.leaderless()]
    for reason in ("replicas_away", "data_folder_replaced", "log_offline"):
        leaderless.add(found.count(reason), reason=reason)
    yield leaderless
    free, total = space_of(broker.data_dir.path)
    for name, about, size in (("free", "Free space", free), ("total", "Size", total)):
        disk = gauge(f"ottla_disk_{name}_bytes", f"{about} of the data folder's file system.")
        disk.add(size)
        yield disk
    full = gauge("ottla_disk_full", "1 while appends fail for lack of space.")
    full.add(int(broker.disk_space.is_full))
    yield full
    topics = gauge("ottla_topics", "Number of topics.")
    topics.add(len(broker.topics.by_name))
    yield topics
    inflated = counter("ottla_batches_decompressed_in_threads", "Large batches decompressed off the event loop.")
    inflated.add(broker.inflating.in_threads)
    yield inflated
    refused = counter("ottla_batches_too_large_decompressed", "Batches beyond the decompression limit.")
    refused.add(broker.inflating.refused)
    yield refused


def _requests(broker: Broker) -> Iterator[Family]:
    requests = counter("ottla_requests", "Requests answered, by API.")
    errors = counter("ottla_request_errors", "Errors in responses, by API and error.")
    received = counter("ottla_request_bytes", "Bytes of requests, by API.")
    sent = counter("ottla_response_bytes", "Bytes of responses, by API.")
    times = histogram("ottla_request_seconds", "Request latency including waiting, by API.")
    for api in sorted(broker.dispatcher.stats, key=lambda one: one.name):
        requests.add(api.count, api=api.name)
        received.add(api.bytes_in, api=api.name)
        sent.add(api.bytes_out, api=api.name)
        times.add_histogram(api, api=api.name)
        for error, count in sorted(api.errors.items()):
            errors.add(count, api=api.name, error=error)
    yield from (requests, errors, received, sent, times)
    fsyncs = histogram("ottla_fsync_seconds", "Latency of fsync of logs.")
    fsyncs.add_histogram(broker.flusher.fsync_times)
    yield fsyncs


def _connections(broker: Broker) -> Iterator[Family]:
    listener = broker.listener
    connections = gauge("ottla_connections", "Open Kafka connections.")
    connections.add(len(listener.connections))
    yield connections
    events = counter("ottla_connection_events", "Connections accepted and closed abnormally, by reason.")
    for what, count in sorted(listener.counts.items()):
        events.add(count, event=what)
    yield events
    yield from _security(broker)
    parked = gauge("ottla_parked_requests", "Fetches waiting for records.")
    parked.add(len({wait for partition in broker.topics.open_partitions() for wait in partition.waits}))
    yield parked
    busy = gauge("ottla_busy_connections", "Connections with a request in progress.")
    busy.add(sum(connection.is_busy for connection in listener.connections))
    yield busy


def _security(broker: Broker) -> Iterator[Family]:
    logins = counter("ottla_logins", "Logins, by mechanism and outcome.")
    counted = {} if broker.security.logins is None else broker.security.logins.counts
    for what, count in sorted(counted.items()):
        mechanism, _, outcome = what.rpartition(" ")
        logins.add(count, mechanism=mechanism, outcome=outcome)
    yield logins
    failures = counter("ottla_tls_failures", "Failed TLS handshakes, by listener.")
    for port in broker.listener.ports:
        if port.tls is not None:
            failures.add(port.tls.failures, listener=str(port.address))
    yield failures
    yield from _audit(broker)


def _audit(broker: Broker) -> Iterator[Family]:
    audit = broker.security.audit
    if audit is None:
        return
    lines = counter("ottla_audit_lines", "Audit lines, by event.")
    for event, count in sorted(audit.counts.items()):
        lines.add(count, event=event)
    yield lines
    dropped = counter("ottla_audit_dropped_lines", "Audit lines that a target could not take, by target.")
    for target in audit.targets:
        dropped.add(target.dropped, target=target.name)
    yield dropped
    waiting = gauge("ottla_audit_waiting_lines", "Audit lines that are not in the audit file yet.")
    waiting.add(audit.waiting)
    yield waiting
    suppressed = counter("ottla_audit_suppressed_lines", "Audit lines beyond the rate limit of an address.")
    suppressed.add(audit.suppressed)
    yield suppressed


def _http(stats: HttpStats) -> Iterator[Family]:
    requests = counter("ottla_http_requests", "HTTP requests, by method, route and status.")
    for (method, route, status), count in sorted(stats.requests.items()):
        requests.add(count, method=method, route=route, status=str(status))
    yield requests
    times = histogram("ottla_http_request_seconds", "HTTP request latency.")
    times.add_histogram(stats.times)
    yield times
    refused = counter("ottla_http_refused_connections", "Connections closed for invalid or too slow HTTP.")
    refused.add(stats.refused_connections)
    yield refused
    skipped = counter("ottla_tail_skipped_messages", "Messages skipped by tails with slow readers.")
    skipped.add(stats.skipped_messages)
    yield skipped
    delays = histogram("ottla_event_loop_delay_seconds", "Event loop lag, sampled every 100 ms.")
    delays.add_histogram(stats.loop_delays)
    yield delays


def _registry(store: Store) -> Iterator[Family]:
    """Metrics of the schema registry, once it was used."""
    subjects = gauge("ottla_schema_registry_subjects", "Subjects of the schema registry, without deleted ones.")
    subjects.add(len(store.state.subjects(":*:")))
    yield subjects
    schemas = gauge("ottla_schema_registry_schemas", "Schemas of the schema registry: different ids.")
    schemas.add(store.state.schema_count)
    yield schemas
    written = counter("ottla_schema_registry_written_records", "Records that this broker wrote to _schemas.")
    written.add(store.written)
    yield written
    ignored = counter("ottla_schema_registry_ignored_records", "Records of _schemas that could not be read.")
    ignored.add(store.ignored + store.state.duplicates)
    yield ignored
    if "validation" in vars(store):
        refused = counter("ottla_schema_validation_refused_records", "Records refused for their schema id.")
        refused.add(store.validation.refused)
        yield refused
        buried = counter("ottla_schema_validation_dead_letters", "Records with an invalid schema id.")
        buried.add(store.validation.buried)
        yield buried


def _shards(stats: ShardStats) -> Iterator[Family]:
    replies = counter("ottla_dmqp_replies", "DMQP requests answered, by method and status.")
    for (method, status), count in sorted(stats.replies.items()):
        replies.add(count, method=method, status=status)
    yield replies
    times = histogram("ottla_dmqp_request_seconds", "DMQP request latency, by method.")
    for method, histogram_of_it in sorted(stats.times.items()):
        times.add_histogram(histogram_of_it, method=method)
    yield times
    connections = gauge("ottla_dmqp_connections", "Open DMQP connections.")
    connections.add(stats.connections)
    yield connections


async def _logs(broker: Broker) -> tuple[Family, ...]:
    sizes = gauge("ottla_log_size_bytes", "Size of a partition on disk.")
    starts = gauge("ottla_log_start_offset", "Log start offset of a partition.")
    ends = gauge("ottla_log_end_offset", "Log end offset of a partition.")
    offline = gauge("ottla_log_offline", "Whether the log of a partition failed or cannot be opened.")

    topics: dict[str, str] = {}

    def note(partition: Partition) -> None:
        topic, number = partition.at.topic, partition.at.partition
        labels = f'{topics.get(topic) or topics.setdefault(topic, labels_text({"topic": topic}))},partition="{number}"'
        offline.add_at(int(partition.is_offline), labels)
        if partition.is_unopenable:
            return
        facts = partition.facts
        sizes.add_at(facts.size, labels)
        starts.add_at(facts.start, labels)
        ends.add_at(partition.log.next_offset if partition.is_open else facts.end, labels)

    async for partition in opened(broker.topics.partitions_here()):
        note(partition)
    return sizes, starts, ends, offline


async def _groups(call: Call) -> tuple[Family, ...]:
    members = gauge("ottla_groups", "Groups, by state and type.")
    lags = gauge("ottla_group_lag", "Lag of a group, by partition with a committed offset.")
    kinds: dict[tuple[str, str], int] = {}
    # Only of this node, since every node is scraped.
    for group in (await call.ask_here(ListGroupsRequest())).groups:
        kind = group.group_state, group.group_type
        kinds[kind] = kinds.get(kind, 0) + 1
        if not call.may(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
            continue
        try:
            found = await lag_of(call.broker, await committed_offsets(call, group.group_id))
        except NodeAway:
            continue  # partial metrics are better than none
        for one in found:
            lags.add(one.lag, group=group.group_id, topic=one.topic, partition=str(one.partition))
        await others()
    for (state, type_), count in sorted(kinds.items()):
        members.add(count, state=state, type=type_)
    budget = call.broker.groups.rules.table.memory
    memory = gauge("ottla_groups_memory_bytes", "Memory of groups, members and committed offsets, estimated.")
    memory.add(budget.held_bytes)
    refused = counter("ottla_group_requests_too_large", "Group requests rejected because of their size.")
    refused.add(budget.refused)
    return members, lags, memory, refused, *_transaction_memory(call.broker)


def _transaction_memory(broker: Broker) -> tuple[Family, Family]:
    # A broker that has served no transaction has no coordinator yet, and accessing it would load one.
    coordinator = broker.__dict__.get("transactions")
    memory = gauge("ottla_transactions_memory_bytes", "Memory of transactional ids and their partitions, estimated.")
    refused = counter("ottla_transaction_requests_too_large", "Requests of transactions refused because of their size.")
    if coordinator is not None:
        memory.add(coordinator.rules.memory.held_bytes)
        refused.add(coordinator.rules.memory.refused)
    return memory, refused


ENDPOINTS: Final = (
    Endpoint("GET", "/metrics", metrics, "Metrics for Prometheus, in OpenMetrics text", streams=OPENMETRICS),
)
