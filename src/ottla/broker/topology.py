"""Brokers, leaders and coordinators as handlers report them to clients: standalone, or in a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ottla.broker.coordinators.placement import coordinator_in
from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Client
    from ottla.broker.topics import TopicState
    from ottla.cluster.state import BrokerInfo, Cluster, ClusterView, PartitionKey

_NO_LEADER: Final = -1
ANY_ADDRESS: Final = ("0.0.0.0", "::")  # noqa: S104 - these are what to look out for


class BrokerEndpoint(NamedTuple):
    """A broker and its advertised address."""

    id: int
    host: str
    port: int
    rack: str | None = None


class PartitionPlacement(NamedTuple):
    """A partition and its replicas."""

    error_code: ErrorCode
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    eligible: tuple[int, ...] = ()
    """Replicas outside the ISR that have all committed records (KIP-966)."""


class Topology(Protocol):
    @property
    def controller_id(self) -> int: ...

    @property
    def node_ids(self) -> Collection[int]:
        """The live brokers."""

    def brokers(self, client: Client) -> Sequence[BrokerEndpoint]: ...

    def placed(self, state: TopicState, partition: int) -> PartitionPlacement: ...

    def coordinator_of(self, topic: str, name: str, client: Client) -> BrokerEndpoint | None:
        """The coordinator of a group or a transactional id by this internal topic; None if there is none."""


class StandaloneTopology:
    """A single broker with all partitions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.controller_id = broker.config.node_id
        self.node_ids = (broker.config.node_id,)

    def brokers(self, client: Client) -> Sequence[BrokerEndpoint]:
        return (self._me(client),)

    def _me(self, client: Client) -> BrokerEndpoint:
        return BrokerEndpoint(self._broker.config.node_id, *self._broker.advertised_to(client))

    def placed(self, state: TopicState, partition: int) -> PartitionPlacement:
        nodes = self.node_ids
        return PartitionPlacement(
            ErrorCode.NONE, self.controller_id, state.partitions[partition].leader_epoch, nodes, nodes
        )

    def coordinator_of(self, topic: str, name: str, client: Client) -> BrokerEndpoint | None:  # noqa: ARG002 - all is here
        return self._me(client)


class ClusterTopology:
    """A broker of a cluster, which knows the others from the cluster's view."""

    def __init__(self, broker: Broker, cluster: Cluster) -> None:
        self._broker = broker
        self._cluster = cluster

    @property
    def controller_id(self) -> int:
        return self._cluster.view.controller_id

    @property
    def node_ids(self) -> Collection[int]:
        return self._cluster.view.brokers.keys()

    def _leads(self, node: int) -> bool:
        """Whether clients can be sent there. A dead broker stays in the view for a while."""
        replication = self._broker.replication
        return node in self._cluster.view.brokers and (replication is None or not replication.is_refused_by(node))

    def brokers(self, client: Client) -> Sequence[BrokerEndpoint]:
        return [_seen(each, client) for each in self._cluster.view.brokers.values()]

    def placed(self, state: TopicState, partition: int) -> PartitionPlacement:
        view = self._cluster.view
        known = view.partition(state.entry.id, partition)
        if known is None:
            # Just created: the controller has not assigned it yet.
            return PartitionPlacement(ErrorCode.LEADER_NOT_AVAILABLE, _NO_LEADER, 0, (), ())
        is_led = self._leads(known.leader)
        return PartitionPlacement(
            ErrorCode.NONE if is_led else ErrorCode.LEADER_NOT_AVAILABLE,
            known.leader if is_led else _NO_LEADER,
            known.leader_epoch,
            known.replicas,
            known.isr,
            tuple(node for node in known.replicas if _is_offline(view, node, known.key)),
            tuple(node for node in known.adding if node not in known.removing),
            known.removing,
            known.eligible,
        )

    def coordinator_of(self, topic: str, name: str, client: Client) -> BrokerEndpoint | None:
        if topic not in self._broker.topics.by_name:
            self._broker.create_topic_soon(topic)
            return None
        found = coordinator_in(self._broker, self._cluster, topic, name)
        return None if found is None or not self._leads(found.id) else _seen(found, client)


def _is_offline(view: ClusterView, node: int, key: PartitionKey) -> bool:
    broker = view.brokers.get(node)
    return broker is None or key in broker.offline


def _seen(broker: BrokerInfo, client: Client) -> BrokerEndpoint:
    """A broker, at its listener with the same name: the client's credentials are valid there."""
    host, port = broker.listeners.get(client.listener, broker.address)
    # A worker on this machine is advertised with the host name that the client used.
    return BrokerEndpoint(broker.id, client.local[0] if host in ANY_ADDRESS else host, port, broker.rack)
