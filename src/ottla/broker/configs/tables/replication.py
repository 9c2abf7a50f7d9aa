"""Topic configs: copies on other brokers and in other storage."""

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
            "How many replicas, the leader among them, must be in sync for a produce request with acks=all to be "
            "taken. With fewer it is refused as NOT_ENOUGH_REPLICAS; acks=0 and acks=1 do not ask. More than a "
            "topic has replicas is as many as it has."
        ),
    ),
    Definition(
        name="unclean.leader.election.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        broker_name="unclean.leader.election.enable",
        documentation=(
            "Whether a replica that was not in sync may lead when no other is left. It makes the partition available "
            "again, and what that replica lacks is lost."
        ),
    ),
    Definition(
        name="leader.replication.throttled.replicas",
        type=ConfigType.LIST,
        default=(),
        rule=REPLICAS,
        documentation=(
            "Which leaders send no faster than leader.replication.throttled.rate to replicas that are not in sync: "
            "partition:broker pairs separated by commas, or * for all of the topic."
        ),
    ),
    Definition(
        name="follower.replication.throttled.replicas",
        type=ConfigType.LIST,
        default=(),
        rule=REPLICAS,
        documentation=(
            "Which replicas fetch no faster than follower.replication.throttled.rate while they are not in sync: "
            "partition:broker pairs separated by commas, or * for all of the topic."
        ),
    ),
    Definition(
        name="remote.storage.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        rule=NO_TIERED_STORAGE,
        documentation="Whether old segments move to tiered storage. There is none here, so only false is accepted.",
    ),
    Definition(
        name="remote.log.copy.disable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation=(
            "With tiered storage, whether to stop moving data there and only read what it has. "
            "Without tiered storage, as here, it is kept but changes nothing."
        ),
    ),
    Definition(
        name="remote.log.delete.on.disable",
        type=ConfigType.BOOLEAN,
        default=False,
        documentation=(
            "With tiered storage, whether switching it off for a topic deletes what it holds of that topic. "
            "Without tiered storage, as here, it is kept but changes nothing."
        ),
    ),
)
