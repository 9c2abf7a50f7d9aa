"""Broker configs: how much anybody may ask for, and what replication may take."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import at_least

_ANY_RATE: Final = (1 << 63) - 1

LIMITS: Final = (
    Definition(
        name="socket.request.max.bytes",
        type=ConfigType.INT,
        default=100 << 20,
        is_read_only=True,
        documentation="The largest request that is read; a client that announces a larger one is disconnected.",
    ),
    Definition(
        name="fetch.max.bytes",
        type=ConfigType.INT,
        default=55 << 20,
        is_read_only=True,
        documentation="The most that one fetch returns, whatever it asks for.",
    ),
    Definition(
        name="max.connections",
        type=ConfigType.INT,
        default=20_000,
        is_read_only=True,
        documentation="How many connections may be open at once.",
    ),
    Definition(
        name="max.connections.per.ip",
        type=ConfigType.INT,
        default=20_000,
        is_read_only=True,
        documentation="How many connections may be open at once from one address.",
    ),
    Definition(
        name="max.connections.per.ip.overrides",
        type=ConfigType.STRING,
        default="",
        is_read_only=True,
        documentation="Other limits for connections from single addresses.",
    ),
    Definition(
        name="connections.max.idle.ms",
        type=ConfigType.LONG,
        default=600_000,
        is_read_only=True,
        documentation="How long a connection may be silent before it is closed.",
    ),
    Definition(
        name="max.incremental.fetch.session.cache.slots",
        type=ConfigType.INT,
        default=1000,
        is_read_only=True,
        documentation="How many incremental fetch sessions (KIP-227) are remembered at once.",
    ),
    Definition(
        name="max.request.partition.size.limit",
        type=ConfigType.INT,
        default=2000,
        is_read_only=True,
        documentation="The most partitions that one answer about topics describes; the client asks on from there.",
    ),
)

REPLICAS: Final = (
    Definition(
        name="replica.lag.time.max.ms",
        type=ConfigType.LONG,
        default=30_000,
        is_read_only=True,
        documentation="How long a follower may be behind its leader before it no longer counts as in sync.",
    ),
    Definition(
        name="auto.leader.rebalance.enable",
        type=ConfigType.BOOLEAN,
        default=True,
        is_read_only=True,
        documentation="Whether leadership goes back by itself to the replica that is meant to have it.",
    ),
    Definition(
        name="controlled.shutdown.enable",
        type=ConfigType.BOOLEAN,
        default=True,
        is_read_only=True,
        documentation="Whether a broker hands over what it leads before it stops.",
    ),
    Definition(
        name="leader.replication.throttled.rate",
        type=ConfigType.LONG,
        default=_ANY_RATE,
        rule=at_least(0),
        is_hidden=True,
        documentation=(
            "How many bytes a second this broker sends to the replicas that leader.replication.throttled.replicas "
            "of a topic names. Reassignment tools set it while they move partitions."
        ),
    ),
    Definition(
        name="follower.replication.throttled.rate",
        type=ConfigType.LONG,
        default=_ANY_RATE,
        rule=at_least(0),
        is_hidden=True,
        documentation=(
            "How many bytes a second this broker fetches for the replicas that "
            "follower.replication.throttled.replicas of a topic names. Reassignment tools set it while they move "
            "partitions."
        ),
    ),
    Definition(
        name="replica.alter.log.dirs.io.max.bytes.per.second",
        type=ConfigType.LONG,
        default=_ANY_RATE,
        rule=at_least(0),
        is_hidden=True,
        documentation="How many bytes a second may be copied between data folders of this broker.",
    ),
)
