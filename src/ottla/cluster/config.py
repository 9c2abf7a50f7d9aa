"""Settings of the cluster."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - the type of a setting is looked up when it is read
from typing import Final, Literal, TypeAlias

from msgspec import Struct

Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
_SHORTEST_SESSION_MS: Final = 2_000


class ClusterConfig(Struct, frozen=True, kw_only=True):
    zookeeper: str = ""
    """The ZooKeeper connect string, `host:port[,host:port…][/path]`. Without it, this broker is standalone."""
    rack: str = ""
    """The rack of this node: replicas of a partition are spread over racks."""
    session_timeout_ms: int = 6_000
    """The ZooKeeper session timeout: partitions of a node that is silent for this long get other leaders."""
    connect_timeout_ms: int = 15_000
    """The timeout of the first connection to ZooKeeper."""
    default_replication_factor: int = 1
    """The replication factor of topics that are created without one."""
    internal_replication_factor: int = 3
    """The replication factor of internal topics such as `__consumer_offsets`; lower if there are fewer nodes."""
    leader_rebalance_interval_ms: int = 300_000
    """How often the controller elects preferred leaders; 0 for never."""
    node_listener: str = ""
    """The protocol of the listener for replication between nodes, such as SSL; by default the first listener."""
    node_tls_ca: Path | None = None
    """The CA certificates that verify other nodes; enables TLS between nodes."""
    node_tls_cert: Path | None = None
    """This node's client certificate for other nodes."""
    node_tls_key: Path | None = None
    """The key of node_tls_cert."""
    node_user: str = ""
    """The user for other nodes; with ACLs, it needs ClusterAction."""
    node_password: str = ""
    """The password of node_user."""
    node_mechanism: Mechanism = "SCRAM-SHA-512"
    """The SASL mechanism between nodes."""
    zookeeper_tls_ca: Path | None = None
    """The CA certificates that verify ZooKeeper; enables TLS."""
    zookeeper_tls_cert: Path | None = None
    """This node's client certificate for ZooKeeper."""
    zookeeper_tls_key: Path | None = None
    """The key of zookeeper_tls_cert."""
    zookeeper_user: str = ""
    """The ZooKeeper user. With it, only this user can read or change the cluster's nodes in ZooKeeper."""
    zookeeper_password: str = ""
    """The password of zookeeper_user."""
    zookeeper_sasl: bool = False
    """Use SASL (DIGEST-MD5) instead of ZooKeeper's digest scheme."""

    def __post_init__(self) -> None:
        if self.session_timeout_ms < _SHORTEST_SESSION_MS:
            raise ValueError(
                f"session_timeout_ms must be at least {_SHORTEST_SESSION_MS}, got {self.session_timeout_ms}"
            )
        for name in ("default_replication_factor", "internal_replication_factor"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for whose in ("zookeeper", "node"):
            if bool(getattr(self, f"{whose}_tls_cert")) != bool(getattr(self, f"{whose}_tls_key")):
                raise ValueError(f"{whose}_tls_cert and {whose}_tls_key must be set together")
        if self.zookeeper_sasl and not self.zookeeper_user:
            raise ValueError("zookeeper_sasl needs zookeeper_user and zookeeper_password")
