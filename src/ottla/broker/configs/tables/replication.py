"""Topic configs: replication and tiered storage."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import NO_TIERED_STORAGE, REPLICAS, at_least

REPLICATION: Final = (
    Definition(
        name="min.insync.replicas",
        type=ConfigType.INT,
        default=1,
        rule=at_least(1),
        broker_name="min.insync.replicas",
        documentation=(
            "The minimum ISR size, including the leader, for a produce request with acks=all to be "
            "accepted. With fewer it gets NOT_ENOUGH_REPLICAS; acks=0 and acks=1 are not affected. A value above "
            "the replication factor counts as the replication factor."
        ),
    ),
    Definition(
        name="unclean.leader.election.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        broker_name="unclean.leader.election.enable",
        documentation=(
            "Whether an out-of-sync replica may become leader when no other is left. The partition becomes available "
            "again, but records that the replica lacks are lost."
        ),
    ),
    Definition(
        name="leader.replication.throttled.replicas",
        type=ConfigType.LIST,
        default=(),
        rule=REPLICAS,
        documentation=(
            "Replicas whose leaders are limited to leader.replication.throttled.rate while they are not in sync: "
            "partition:broker pairs separated by commas, or * for all of the topic."
        ),
    ),
    Definition(
        name="follower.replication.throttled.replicas",
        type=ConfigType.LIST,
        default=(),
        rule=REPLICAS,
        documentation=(
            "Replicas that are limited to follower.replication.throttled.rate while they are not in sync: "
            "partition:broker pairs separated by commas, or * for all of the topic."
        ),
    ),
    Definition(
        name="remote.storage.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        rule=NO_TIERED_STORAGE,
        documentation="Whether old segments move to tiered storage. Not supported: only false is accepted.",
    ),
    Definition(
        name="remote.log.copy.disable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation=(
            "With tiered storage, whether to stop copying data there and only read from it. "
            "Without tiered storage, as here, it has no effect."
        ),
    ),
    Definition(
        name="remote.log.delete.on.disable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation=(
            "With tiered storage, whether disabling it for a topic deletes the topic's remote data. "
            "Without tiered storage, as here, it has no effect."
        ),
    ),
)
