"""The broker, the cluster, configs, log directories and connected clients."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Final, Literal

from ottla import __version__
from ottla.broker.interfaces.in_process_requests import raise_refusal
from ottla.core.errors import ApiError
from ottla.core.security import CLUSTER_NAME, AclOperation, ResourceType
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Struct
from ottla.http.resources.configs import BROKER, ConfigChanges, ConfigList, changed, described
from ottla.http.resources.topics import is_own
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call
    from ottla.wire.messages.describe_cluster import DescribeClusterBroker
    from ottla.wire.messages.describe_log_dirs import DescribeLogDirsResult


class BrokerInfo(Struct, frozen=True, kw_only=True):
    broker_id: int
    version: str
    cluster_id: str
    kafka: str
    """host:port of the Kafka protocol."""
    security_protocol: str
    """Of this address: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    sasl_mechanisms: list[str]
    """Accepted at this address; none without SASL."""
    data_dir: str
    topics: int
    """Without internal topics; likewise their partitions."""
    partitions: int
    groups: int
    connections: int


async def show_broker(call: Call) -> BrokerInfo:
    broker = call.broker
    topics = [state for state in broker.topics.by_name.values() if not is_own(state)]
    port = broker.listener.ports[0].config
    return BrokerInfo(
        broker_id=broker.config.node_id,
        version=__version__,
        cluster_id=broker.cluster_id,
        kafka=str(broker.address),
        security_protocol=port.protocol,
        sasl_mechanisms=list(port.mechanisms or ()) if port.uses_sasl else [],
        data_dir=str(broker.data_dir.path.absolute()),
        topics=len(topics),
        partitions=sum(len(state.partitions) for state in topics),
        groups=sum(1 for _ in broker.groups.rules.table),
        connections=len(broker.listener.connections),
    )


class ClusterNode(Struct, frozen=True, kw_only=True):
    broker_id: int
    host: str
    port: int
    rack: str | None
    state: Literal["up", "unreachable"]
    """Whether it answers this node; nodes that have left the cluster are not listed."""
    problem: str
    """Why it does not answer."""
    leads: int
    """The number of partitions it leads."""
    holds: int
    """The number of replicas it has."""
    in_sync: int
    """The number of its replicas in the ISR."""
    total_bytes: int
    """The size of its disk; -1 if it does not answer."""
    usable_bytes: int
    """The free space of its disk; -1 if it does not answer."""


class LeaderlessPartition(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    isr: list[int]
    """The last in-sync replicas."""
    replaced: list[int]
    """Those whose broker returned with another data folder, or an older copy of it."""
    offline: list[int]
    """Those with a failed disk."""
    reason: str
    """`replicas_away`, `data_folder_replaced` or `log_offline`."""
    problem: str
    """Why it has no leader, and what to do."""


class ClusterInfo(Struct, frozen=True, kw_only=True):
    cluster_id: str
    controller_id: int
    brokers: list[ClusterNode]
    partitions_without_leader: list[LeaderlessPartition]


async def show_cluster(call: Call) -> ClusterInfo:
    answer = await call.ask(DescribeClusterRequest(include_cluster_authorized_operations=False))
    raise_refusal(answer.error_code, answer.error_message)
    roles = _roles(call)
    nodes = await asyncio.gather(*(_node(call, one, roles) for one in answer.brokers))
    return ClusterInfo(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        brokers=list(nodes),
        partitions_without_leader=_leaderless(call),
    )


def _leaderless(call: Call) -> list[LeaderlessPartition]:
    """The leaderless partitions of topics that the user may describe."""
    replication = call.broker.replication
    return [
        LeaderlessPartition(
            topic=each.topic,
            partition=each.partition,
            isr=list(each.isr),
            replaced=list(each.replaced),
            offline=list(each.offline),
            reason=each.reason,
            problem=str(each),
        )
        for each in ([] if replication is None else replication.leaderless())
        if call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, each.topic)
    ]


def _roles(call: Call) -> Counter[tuple[str, int]]:
    """The number of partitions of each node, by role."""
    found: Counter[tuple[str, int]] = Counter()
    for state in call.broker.topics.by_name.values():
        for index in range(len(state.partitions)):
            placed = call.broker.topology.placed(state, index)
            found["leads", placed.leader] += 1
            found.update(("holds", node) for node in placed.replicas)
            found.update(("in_sync", node) for node in placed.isr)
    return found


async def _node(call: Call, one: DescribeClusterBroker, roles: Counter[tuple[str, int]]) -> ClusterNode:
    problem, disk = "", None
    try:
        disk = await _disk(call, one.broker_id)
    except ApiError as away:
        problem = str(away)
    return ClusterNode(
        broker_id=one.broker_id,
        host=one.host,
        port=one.port,
        rack=one.rack,
        state="unreachable" if problem else "up",
        problem=problem,
        leads=roles["leads", one.broker_id],
        holds=roles["holds", one.broker_id],
        in_sync=roles["in_sync", one.broker_id],
        total_bytes=-1 if disk is None else disk.total_bytes,
        usable_bytes=-1 if disk is None else disk.usable_bytes,
    )


async def _disk(call: Call, node: int) -> DescribeLogDirsResult | None:
    """The node's disk space as it reports it; None without permission."""
    if not call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return None
    request, replication = DescribeLogDirsRequest(topics=()), call.broker.replication
    if replication is None or node == replication.node_id:
        answer = await call.ask(request)
    else:
        answer = await replication.others.ask(node, request)
    raise_refusal(answer.error_code)
    [disk] = answer.results
    raise_refusal(disk.error_code)
    return disk


class LogDirPartition(Struct, frozen=True, kw_only=True):
    topic: str
    partition: int
    size_bytes: int


class LogDir(Struct, frozen=True, kw_only=True):
    path: str
    total_bytes: int
    usable_bytes: int
    partitions: list[LogDirPartition]


class LogDirList(Struct, frozen=True, kw_only=True):
    log_dirs: list[LogDir]


async def list_log_dirs(call: Call) -> LogDirList:
    answer = await call.ask(DescribeLogDirsRequest(topics=None))
    raise_refusal(answer.error_code)
    found = []
    for result in answer.results:
        raise_refusal(result.error_code)
        partitions = [
            LogDirPartition(topic=topic.name, partition=one.partition_index, size_bytes=one.partition_size)
            for topic in result.topics
            for one in topic.partitions
        ]
        found.append(
            LogDir(
                path=result.log_dir,
                total_bytes=result.total_bytes,
                usable_bytes=result.usable_bytes,
                partitions=partitions,
            )
        )
    return LogDirList(log_dirs=found)


class Client(Struct, frozen=True, kw_only=True):
    host: str
    port: int
    software: str | None
    """The client's software name and version."""
    is_busy: bool
    """Whether a request is in progress."""


class ClientList(Struct, frozen=True, kw_only=True):
    clients: list[Client]


async def list_clients(call: Call) -> ClientList:
    call.check_cluster()
    found = []
    for connection in call.broker.listener.connections:
        software = connection.state.get("software")
        host, port = connection.peer
        known = None if software is None else str(software)
        found.append(Client(host=host, port=port, software=known, is_busy=connection.is_busy))
    return ClientList(clients=sorted(found, key=lambda one: (one.host, one.port)))


async def show_configs(call: Call) -> ConfigList:
    return await described(call, BROKER, str(call.broker.config.node_id))


async def change_configs(call: Call) -> ConfigList:
    changes = await call.body(ConfigChanges)
    return await changed(call, BROKER, str(call.broker.config.node_id), changes)


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/broker", show_broker, "Summary of the broker", answer=BrokerInfo),
    Endpoint("GET", "/v1/cluster", show_cluster, "The brokers of the cluster", answer=ClusterInfo),
    Endpoint("GET", "/v1/configs", show_configs, "The configs of the broker", answer=ConfigList),
    Endpoint(
        "PATCH", "/v1/configs", change_configs, "Change configs of the broker", body=ConfigChanges, answer=ConfigList
    ),
    Endpoint("GET", "/v1/log-dirs", list_log_dirs, "The log directory and its partitions", answer=LogDirList),
    Endpoint("GET", "/v1/clients", list_clients, "Connected Kafka clients", answer=ClientList),
)
