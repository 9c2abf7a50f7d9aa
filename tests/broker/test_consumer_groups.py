"""Consumer groups over the wire: responses to a raw client, and state after a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ottla
from ottla.broker.configs.alter import Operation
from ottla.broker.configs.layers import ConfigSource
from ottla.core.errors import ErrorCode
from ottla.wire.messages import incremental_alter_configs as incremental
from ottla.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

from .making import create_topic
from .raw_client import RawClient

if TYPE_CHECKING:
    from pathlib import Path

GROUP = 32
SESSION, INTERVAL = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


def beat(client: RawClient, group: str, topic: str, epoch: int = 0, **fields: Any) -> Any:
    joining = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": (topic,), "topic_partitions": ()}
    said = {"member_id": "ann", **(joining if epoch == 0 else {}), **fields}
    return client.ask(ConsumerGroupHeartbeatRequest(group_id=group, member_epoch=epoch, **said))


def described(client: RawClient, group: str) -> Any:
    request = ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
    return client.ask(request).groups[0]


def listed(client: RawClient, group: str, **filters: tuple[str, ...]) -> list[tuple[str, str]]:
    groups = client.ask(ListGroupsRequest(**filters)).groups
    return [(one.group_state, one.group_type) for one in groups if one.group_id == group]


def commit(client: RawClient, group: str, topic: str, epoch: int) -> int:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name=topic, partitions=(part,)),)
    request = OffsetCommitRequest(group_id=group, member_id="ann", generation_id_or_member_epoch=epoch, topics=topics)
    return client.ask(request, 9).topics[0].partitions[0].error_code  # type: ignore[no-any-return]


def alter(client: RawClient, group: str, **values: str) -> int:
    names = {"session": SESSION, "interval": INTERVAL}
    configs = tuple(
        incremental.AlterableConfig(name=names[name], config_operation=Operation.SET, value=value)
        for name, value in values.items()
    )
    resource = incremental.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=configs)
    request = incremental.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    return client.ask(request).responses[0].error_code  # type: ignore[no-any-return]


def test_a_member_joins_is_shown_commits_and_leaves(client: RawClient, topic: str) -> None:
    answer = beat(client, topic, topic)
    assert [one.partitions for one in answer.assignment.topic_partitions] == [(0,)]
    assert listed(client, topic) == [("Stable", "consumer")]
    assert listed(client, topic, types_filter=("Classic",)) == []
    assert listed(client, topic, types_filter=("Consumer",), states_filter=("stable",)) == [("Stable", "consumer")]
    group = described(client, topic)
    [member] = group.members
    assert (group.group_state, group.group_epoch, member.member_id, member.member_epoch) == ("Stable", 2, "ann", 2)
    assert [one.topic_name for one in member.assignment.topic_partitions] == [topic]

    assert commit(client, topic, topic, 2) == ErrorCode.NONE
    assert commit(client, topic, topic, 3) == ErrorCode.STALE_MEMBER_EPOCH
    asked = OffsetFetchRequestGroup(group_id=topic, member_id="ann", member_epoch=1, topics=None)
    assert client.ask(OffsetFetchRequest(groups=(asked,)), 9).groups[0].error_code == ErrorCode.STALE_MEMBER_EPOCH

    deletion = DeleteGroupsRequest(groups_names=(topic,))
    assert client.ask(deletion).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    beat(client, topic, topic, -1)
    assert listed(client, topic) == [("Empty", "consumer")]
    assert client.ask(deletion).results[0].error_code == ErrorCode.NONE
    assert listed(client, topic) == []
    assert described(client, topic).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_has_its_own_configs(client: RawClient, topic: str) -> None:
    assert beat(client, topic, topic).heartbeat_interval_ms == 5000
    assert alter(client, topic, interval="7000", session="50000") == ErrorCode.NONE
    assert beat(client, topic, topic, 2).heartbeat_interval_ms == 7000

    resource = DescribeConfigsResource(resource_type=GROUP, resource_name=topic, configuration_keys=None)
    [result] = client.ask(DescribeConfigsRequest(resources=(resource,))).results
    found = {one.name: (one.value, ConfigSource(one.config_source)) for one in result.configs}
    assert found[INTERVAL] == ("7000", ConfigSource.DYNAMIC_GROUP_CONFIG)
    assert found[SESSION] == ("50000", ConfigSource.DYNAMIC_GROUP_CONFIG)


def test_group_configs_stay_within_the_brokers_bounds(client: RawClient, topic: str) -> None:
    assert alter(client, topic, interval="1") == ErrorCode.INVALID_CONFIG
    assert alter(client, topic, session="1") == ErrorCode.INVALID_CONFIG
    assert alter(client, topic, session="90000") == ErrorCode.INVALID_CONFIG
    assert alter(client, topic, session="soon") == ErrorCode.INVALID_CONFIG
    assert alter(client, topic, session="60000", interval="15000") == ErrorCode.NONE


def test_a_group_its_members_and_its_configs_survive_a_restart(tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        create_topic(client, "t", 2)
        beat(client, "g", "t")
        alter(client, "g", interval="6000")
        before = described(client, "g")
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        assert described(client, "g") == before
        answer = beat(client, "g", "t", 2)
        assert (answer.error_code, answer.member_epoch, answer.heartbeat_interval_ms) == (ErrorCode.NONE, 2, 6000)
        assert answer.assignment is None
