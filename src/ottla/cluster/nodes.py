"""The layout of ZooKeeper: JSON, with one node per entity.

/cluster                    the cluster id and the format version
/registrations/N            its version is the number of starts of node N, which fences decisions about earlier ones
/data_folders/ID            how recent the data folder with this id is
/brokers/N                  registration of node N (ephemeral)
/controller                 the active controller (ephemeral)
/controller_epoch           the controller epoch; its version guards every decision
/topics/NAME                a topic
/partitions/TOPIC_ID/N      replicas, leader and ISR of a partition
/credentials, /tokens, /acls, /quotas, /configs      the rest of the catalog, one node per entry
/producer_ids               the next producer id to assign
/dmqp/topics/NAME           topics exposed over DMQP (`exposed_shards`)
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ottla.cluster.state import BrokerInfo, PartitionKey, PartitionState
from ottla.core.ids import Address, TopicId

FORMAT: Final = 1

CLUSTER: Final = "/cluster"
BROKERS: Final = "/brokers"
REGISTRATIONS: Final = "/registrations"
DATA_FOLDERS: Final = "/data_folders"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
TOPICS: Final = "/topics"
PARTITIONS: Final = "/partitions"
CREDENTIALS: Final = "/credentials"
TOKENS: Final = "/tokens"
ACLS: Final = "/acls"
QUOTAS: Final = "/quotas"
CONFIGS: Final = "/configs"
PRODUCER_IDS: Final = "/producer_ids"

CATALOG_FOLDERS: Final = (TOPICS, CREDENTIALS, TOKENS, ACLS, QUOTAS, CONFIGS)
FOLDERS: Final = (BROKERS, *CATALOG_FOLDERS)
LEAVES: Final = (CONTROLLER, CONTROLLER_EPOCH)


def to_json(value: object) -> bytes:
    return msgspec.json.encode(value)


def from_json(data: bytes) -> Any:  # noqa: ANN401 - whatever was written
    return msgspec.json.decode(data)


# Nodes


def broker_path(node_id: int) -> str:
    return f"{BROKERS}/{node_id}"


def broker_data(broker: BrokerInfo) -> bytes:
    fields: dict[str, object] = {
        "listeners": {name: [address.host, address.port] for name, address in broker.listeners.items()},
        "rack": broker.rack,
        "free_bytes": broker.free_bytes,
        "folder": broker.folder,
        "registration": broker.registration,
    }
    if broker.offline:
        fields["offline"] = sorted(f"{key.topic_id}/{key.partition}" for key in broker.offline)
    return to_json(fields)


def read_broker(node_id: int, data: bytes, created: int, *, is_draining: bool) -> BrokerInfo:
    fields = from_json(data)
    listeners = {name: Address(host, port) for name, (host, port) in fields["listeners"].items()}
    return BrokerInfo(
        id=node_id,
        listeners=listeners,
        rack=fields["rack"],
        epoch=created,
        free_bytes=fields["free_bytes"],
        folder=fields["folder"],
        registration=fields.get("registration", -1),
        is_draining=is_draining,
        offline=frozenset(read_partition_path(f"{PARTITIONS}/{each}") for each in fields.get("offline", ())),
    )


def folder_of_broker(data: bytes) -> str:
    """The id of the node's data folder when it registered."""
    return str(from_json(data)["folder"])


def registration_path(node_id: int) -> str:
    return f"{REGISTRATIONS}/{node_id}"


def data_folder_path(folder_id: str) -> str:
    return f"{DATA_FOLDERS}/{folder_id}"


# Partitions


def partitions_path(topic_id: TopicId) -> str:
    return f"{PARTITIONS}/{topic_id}"


def partition_path(key: PartitionKey) -> str:
    return f"{PARTITIONS}/{key.topic_id}/{key.partition}"


def read_partition_path(path: str) -> PartitionKey:
    _, _, topic_id, index = path.split("/")
    return PartitionKey(TopicId.parse(topic_id), int(index))


def partition_data(state: PartitionState) -> bytes:
    fields: dict[str, object] = {
        "replicas": state.replicas,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "isr": state.isr,
    }
    if state.is_reassigning:
        fields |= {"adding": state.adding, "removing": state.removing}
    if state.folders:
        fields["folders"] = state.folders
    if state.eligible:
        fields["eligible"] = state.eligible
    return to_json(fields)


def read_partition(key: PartitionKey, topic: str, data: bytes, version: int, min_isr: int = 1) -> PartitionState:
    fields = from_json(data)
    return PartitionState(
        topic_id=key.topic_id,
        topic=topic,
        partition=key.partition,
        replicas=tuple(fields["replicas"]),
        leader=fields["leader"],
        leader_epoch=fields["leader_epoch"],
        isr=tuple(fields["isr"]),
        version=version,
        adding=tuple(fields.get("adding", ())),
        removing=tuple(fields.get("removing", ())),
        folders=tuple((node, folder) for node, folder in fields.get("folders", ())),
        eligible=tuple(fields.get("eligible", ())),
        min_isr=min_isr,
    )


# The controller


def controller_data(node_id: int, epoch: int) -> bytes:
    return to_json({"node": node_id, "epoch": epoch})


def read_controller(data: bytes) -> int:
    return int(from_json(data)["node"])
