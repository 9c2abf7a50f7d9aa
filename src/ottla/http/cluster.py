"""The broker, the cluster, its configs, its folders and who is connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla import __version__
from ottla.broker.asking import raise_refusal
from ottla.http.configs import BROKER, ConfigChanges, ConfigList, changed, described
from ottla.http.endpoints import Endpoint
from ottla.http.models import Struct
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest

if TYPE_CHECKING:
    from ottla.http.endpoints import Call


class BrokerInfo(Struct, frozen=True, kw_only=True):
    broker_id: int
    version: str
    cluster_id: str
    kafka: str
    """host:port of the Kafka protocol."""
    data_dir: str
    topics: int
    partitions: int
    groups: int
    connections: int


async def show_broker(call: Call) -> BrokerInfo:
    broker = call.broker
    return BrokerInfo(
        broker_id=broker.config.node_id,
        version=__version__,
        cluster_id=broker.cluster_id,
        kafka=str(broker.address),
        data_dir=str(broker.data_dir.path.absolute()),
        topics=len(broker.topics.by_name),
        partitions=sum(len(state.partitions) for state in broker.topics.by_name.values()),
        groups=sum(1 for _ in broker.groups.rules.table),
        connections=len(broker.listener.connections),
    )


class ClusterNode(Struct, frozen=True, kw_only=True):
    broker_id: int
    host: str
    port: int
    rack: str | None


class ClusterInfo(Struct, frozen=True, kw_only=True):
    cluster_id: str
    controller_id: int
    brokers: list[ClusterNode]


async def show_cluster(call: Call) -> ClusterInfo:
    answer = await call.ask(DescribeClusterRequest(include_cluster_authorized_operations=False))
    raise_refusal(answer.error_code, answer.error_message)
    nodes = [
        ClusterNode(broker_id=one.broker_id, host=one.host, port=one.port, rack=one.rack) for one in answer.brokers
    ]
    return ClusterInfo(cluster_id=answer.cluster_id, controller_id=answer.controller_id, brokers=nodes)


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
    """What the client says it is."""
    is_busy: bool
    """Whether a request of it is being answered."""


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
    Endpoint("GET", "/v1/broker", show_broker, "The broker at a glance", answer=BrokerInfo),
    Endpoint("GET", "/v1/cluster", show_cluster, "The brokers of the cluster", answer=ClusterInfo),
    Endpoint("GET", "/v1/configs", show_configs, "The configs of the broker", answer=ConfigList),
    Endpoint(
        "PATCH", "/v1/configs", change_configs, "Change configs of the broker", body=ConfigChanges, answer=ConfigList
    ),
    Endpoint("GET", "/v1/log-dirs", list_log_dirs, "The data folder and what is in it", answer=LogDirList),
    Endpoint("GET", "/v1/clients", list_clients, "The Kafka clients that are connected", answer=ClientList),
)
