"""What can be set about the cluster that a broker belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - the type of a setting is looked up when it is read
from typing import Final, Literal, TypeAlias

Mechanism: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
_SHORTEST_SESSION_MS: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    zookeeper: str = ""
    """The servers of ZooKeeper, `host:port[,host:port…][/path]`. Without any, this broker is alone."""
    rack: str = ""
    """Where this node is: replicas of a partition are kept on different racks."""
    session_timeout_ms: int = 6_000
    """How long ZooKeeper waits for a silent node before others take over what it leads."""
    connect_timeout_ms: int = 15_000
    """How long a start waits for ZooKeeper."""
    default_replication_factor: int = 1
    """How many nodes hold a topic when nobody says."""
    internal_replication_factor: int = 3
    """How many nodes hold `__consumer_offsets` and its like; fewer if there are not so many."""
    leader_rebalance_interval_ms: int = 300_000
    """How often the controller gives partitions back to the nodes preferred to lead them; 0 for never."""
    node_listener: str = ""
    """The protocol of the listener over which nodes copy from each other, such as SSL; else the first listener."""
    node_tls_ca: Path | None = None
    """The certificates that other nodes' are checked against; with them nodes copy over TLS."""
    node_tls_cert: Path | None = None
    """This node's own certificate for other nodes."""
    node_tls_key: Path | None = None
    """The key that belongs to it."""
    node_user: str = ""
    """Log in to other nodes as this user, who needs the right to ClusterAction where there are ACLs."""
    node_password: str = ""
    """The password that belongs to it."""
    node_mechanism: Mechanism = "SCRAM-SHA-512"
    """How nodes log in to each other."""
    zookeeper_tls_ca: Path | None = None
    """The certificates that ZooKeeper's is checked against; with them the connection is encrypted."""
    zookeeper_tls_cert: Path | None = None
    """This node's own certificate for ZooKeeper."""
    zookeeper_tls_key: Path | None = None
    """The key that belongs to it."""
    zookeeper_user: str = ""
    """Log in to ZooKeeper as this user. Then nobody else may read or change what the cluster keeps there."""
    zookeeper_password: str = ""
    """The password that belongs to it."""
    zookeeper_sasl: bool = False
    """Log in with SASL (DIGEST-MD5), not with ZooKeeper's own digest scheme."""

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
                raise ValueError(f"{whose}_tls_cert and {whose}_tls_key go together")
        if self.zookeeper_sasl and not self.zookeeper_user:
            raise ValueError("zookeeper_sasl needs zookeeper_user and zookeeper_password")
