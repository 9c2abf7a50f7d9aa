"""One table says what each API asks for: which operation, on which resource."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from ottla.broker.answers import then
from ottla.broker.authorization import groups, share_groups, topics, transactions
from ottla.broker.authorization.rules import CLUSTER, Each, Need, Resource, Rule
from ottla.broker.authorized_operations import CLUSTER_OPERATIONS
from ottla.broker.topic_names import topic_name
from ottla.storage.catalog.entries import AclOperation as Op
from ottla.storage.catalog.entries import ResourceType
from ottla.wire import apis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.answers import Handler, NowOrLater
    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.wire.apis import Api

_TOPIC: Final = ResourceType.TOPIC
_GROUP: Final = ResourceType.GROUP
_CLUSTER: Final = ResourceType.CLUSTER
_TXN: Final = ResourceType.TRANSACTIONAL_ID
_CONFIGURED: Final = {2: _TOPIC, 32: _GROUP}
"""Resource types of configs; all but these are the cluster's."""


def _configured(_: Broker, item: Any) -> Resource:  # noqa: ANN401 - of any request about configs
    kind = _CONFIGURED.get(item.resource_type)
    return CLUSTER if kind is None else Resource(kind, item.resource_name)


def _as_named(_: Broker, item: Any) -> str:  # noqa: ANN401
    return str(item)


def _share_topic(_: Broker, item: Any) -> str:  # noqa: ANN401
    return str(item.topic_name)


def _describe_cluster(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: Any,  # noqa: ANN401 - of whatever API
    context: Context,
) -> NowOrLater:
    answer = handler(broker, request, context)
    if not request.include_cluster_authorized_operations:
        return answer
    bits = authorizer.bits(context, *CLUSTER, CLUSTER_OPERATIONS)
    return then(answer, lambda response: structs.replace(response, cluster_authorized_operations=bits))


def _delete_topics(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: Any,  # noqa: ANN401 - of whatever API
    context: Context,
) -> NowOrLater:
    from ottla.broker.authorization.rules import filtered

    by_name = Each(Op.DELETE, _TOPIC, "topic_names", "responses", _as_named)
    each = Each(Op.DELETE, _TOPIC, "topics", "responses", topic_name) if request.topics else by_name
    return filtered(each, authorizer, handler, broker, request, context)


RULES: Final[Mapping[int, Rule]] = {
    # Everybody
    apis.API_VERSIONS.key: Rule(),
    apis.SASL_HANDSHAKE.key: Rule(),
    apis.SASL_AUTHENTICATE.key: Rule(),
    # Topics
    apis.PRODUCE.key: Rule(custom=topics.produce, also=((Op.WRITE, _TOPIC), (Op.WRITE, _TXN))),
    apis.FETCH.key: Rule(custom=topics.fetch, also=((Op.READ, _TOPIC), (Op.CLUSTER_ACTION, _CLUSTER))),
    apis.LIST_OFFSETS.key: Rule(each=Each(Op.DESCRIBE, _TOPIC, "topics", "topics")),
    apis.OFFSET_FOR_LEADER_EPOCH.key: Rule(each=Each(Op.DESCRIBE, _TOPIC, "topics", "topics", topic_name)),
    apis.METADATA.key: Rule(
        custom=topics.metadata, also=((Op.DESCRIBE, _TOPIC), (Op.CREATE, _TOPIC), (Op.CREATE, _CLUSTER))
    ),
    apis.DESCRIBE_TOPIC_PARTITIONS.key: Rule(custom=topics.describe_topic_partitions, also=((Op.DESCRIBE, _TOPIC),)),
    apis.CREATE_TOPICS.key: Rule(
        custom=topics.create_topics,
        also=((Op.CREATE, _TOPIC), (Op.CREATE, _CLUSTER), (Op.DESCRIBE_CONFIGS, _TOPIC)),
    ),
    apis.DELETE_TOPICS.key: Rule(custom=_delete_topics, also=((Op.DELETE, _TOPIC),)),
    apis.CREATE_PARTITIONS.key: Rule(each=Each(Op.ALTER, _TOPIC, "topics", "results")),
    apis.DELETE_RECORDS.key: Rule(each=Each(Op.DELETE, _TOPIC, "topics", "topics")),
    apis.DESCRIBE_PRODUCERS.key: Rule(each=Each(Op.READ, _TOPIC, "topics", "topics")),
    # Groups
    apis.FIND_COORDINATOR.key: Rule(
        custom=groups.find_coordinator,
        also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TXN), (Op.CLUSTER_ACTION, _CLUSTER)),
    ),
    apis.JOIN_GROUP.key: Rule((Need(Op.READ, _GROUP, "group_id"),), waits=True),
    apis.SYNC_GROUP.key: Rule((Need(Op.READ, _GROUP, "group_id"),), waits=True),
    apis.HEARTBEAT.key: Rule((Need(Op.READ, _GROUP, "group_id"),)),
    apis.LEAVE_GROUP.key: Rule((Need(Op.READ, _GROUP, "group_id"),)),
    apis.OFFSET_COMMIT.key: Rule(
        (Need(Op.READ, _GROUP, "group_id"),), Each(Op.READ, _TOPIC, "topics", "topics", topic_name)
    ),
    apis.OFFSET_FETCH.key: Rule(custom=groups.offset_fetch, also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC))),
    apis.OFFSET_DELETE.key: Rule(
        (Need(Op.DELETE, _GROUP, "group_id"),), Each(Op.READ, _TOPIC, "topics", "topics", always_asked={})
    ),
    apis.LIST_GROUPS.key: Rule(custom=groups.list_groups, also=((Op.DESCRIBE, _CLUSTER), (Op.DESCRIBE, _GROUP))),
    apis.DESCRIBE_GROUPS.key: Rule(custom=groups.describe_groups, also=((Op.DESCRIBE, _GROUP),)),
    apis.DELETE_GROUPS.key: Rule(each=Each(Op.DELETE, _GROUP, "groups_names", "results", _as_named)),
    apis.CONSUMER_GROUP_HEARTBEAT.key: Rule(
        (Need(Op.READ, _GROUP, "group_id"),), custom=groups.subscribe, also=((Op.DESCRIBE, _TOPIC),)
    ),
    apis.CONSUMER_GROUP_DESCRIBE.key: Rule(
        custom=groups.describe_consumer_groups, also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC))
    ),
    apis.SHARE_GROUP_HEARTBEAT.key: Rule(
        (Need(Op.READ, _GROUP, "group_id"),), custom=groups.subscribe, also=((Op.DESCRIBE, _TOPIC),)
    ),
    apis.SHARE_GROUP_DESCRIBE.key: Rule(
        custom=share_groups.describe_share_groups, also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC))
    ),
    apis.SHARE_FETCH.key: Rule(
        (Need(Op.READ, _GROUP, "group_id"),),
        Each(Op.READ, _TOPIC, "topics", "responses", topic_name, always_asked={"max_wait_ms": 0}),
        waits=True,
    ),
    apis.SHARE_ACKNOWLEDGE.key: Rule(
        (Need(Op.READ, _GROUP, "group_id"),),
        Each(Op.READ, _TOPIC, "topics", "responses", topic_name, always_asked={}),
    ),
    apis.INITIALIZE_SHARE_GROUP_STATE.key: Rule((Need(Op.CLUSTER_ACTION, _CLUSTER),)),
    apis.READ_SHARE_GROUP_STATE.key: Rule((Need(Op.CLUSTER_ACTION, _CLUSTER),)),
    apis.WRITE_SHARE_GROUP_STATE.key: Rule((Need(Op.CLUSTER_ACTION, _CLUSTER),)),
    apis.DELETE_SHARE_GROUP_STATE.key: Rule((Need(Op.CLUSTER_ACTION, _CLUSTER),)),
    apis.READ_SHARE_GROUP_STATE_SUMMARY.key: Rule((Need(Op.CLUSTER_ACTION, _CLUSTER),)),
    apis.DESCRIBE_SHARE_GROUP_OFFSETS.key: Rule(
        custom=share_groups.describe_share_group_offsets, also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC))
    ),
    apis.ALTER_SHARE_GROUP_OFFSETS.key: Rule(
        (Need(Op.READ, _GROUP, "group_id"),), Each(Op.READ, _TOPIC, "topics", "responses", _share_topic)
    ),
    apis.DELETE_SHARE_GROUP_OFFSETS.key: Rule(
        (Need(Op.DELETE, _GROUP, "group_id"),),
        Each(Op.READ, _TOPIC, "topics", "responses", _share_topic, always_asked={}),
    ),
    # Transactions
    apis.INIT_PRODUCER_ID.key: Rule(
        custom=transactions.init_producer_id,
        also=((Op.WRITE, _TXN), (Op.IDEMPOTENT_WRITE, _CLUSTER), (Op.WRITE, _TOPIC)),
    ),
    apis.ADD_PARTITIONS_TO_TXN.key: Rule(
        custom=transactions.add_partitions_to_txn,
        also=((Op.WRITE, _TXN), (Op.WRITE, _TOPIC), (Op.CLUSTER_ACTION, _CLUSTER)),
    ),
    apis.ADD_OFFSETS_TO_TXN.key: Rule((Need(Op.WRITE, _TXN, "transactional_id"), Need(Op.READ, _GROUP, "group_id"))),
    apis.END_TXN.key: Rule((Need(Op.WRITE, _TXN, "transactional_id"),)),
    apis.WRITE_TXN_MARKERS.key: Rule((Need(Op.CLUSTER_ACTION, _CLUSTER),)),
    apis.TXN_OFFSET_COMMIT.key: Rule(
        (Need(Op.WRITE, _TXN, "transactional_id"), Need(Op.READ, _GROUP, "group_id")),
        Each(Op.READ, _TOPIC, "topics", "topics"),
    ),
    apis.DESCRIBE_TRANSACTIONS.key: Rule(
        custom=transactions.describe_transactions, also=((Op.DESCRIBE, _TXN), (Op.DESCRIBE, _TOPIC))
    ),
    # Its handler leaves out what may not be described, before it matches patterns.
    apis.LIST_TRANSACTIONS.key: Rule(also=((Op.DESCRIBE, _TXN),)),
    # The cluster
    apis.DESCRIBE_CLUSTER.key: Rule(custom=_describe_cluster),
    apis.DESCRIBE_CONFIGS.key: Rule(
        each=Each(Op.DESCRIBE_CONFIGS, _TOPIC, "resources", "results", resource=_configured),
        also=((Op.DESCRIBE_CONFIGS, _CLUSTER), (Op.DESCRIBE_CONFIGS, _GROUP)),
    ),
    apis.ALTER_CONFIGS.key: Rule(
        each=Each(Op.ALTER_CONFIGS, _TOPIC, "resources", "responses", resource=_configured),
        also=((Op.ALTER_CONFIGS, _CLUSTER), (Op.ALTER_CONFIGS, _GROUP)),
    ),
    apis.INCREMENTAL_ALTER_CONFIGS.key: Rule(
        each=Each(Op.ALTER_CONFIGS, _TOPIC, "resources", "responses", resource=_configured),
        also=((Op.ALTER_CONFIGS, _CLUSTER), (Op.ALTER_CONFIGS, _GROUP)),
    ),
    apis.LIST_CONFIG_RESOURCES.key: Rule((Need(Op.DESCRIBE_CONFIGS, _CLUSTER),)),
    apis.DESCRIBE_LOG_DIRS.key: Rule((Need(Op.DESCRIBE, _CLUSTER),)),
    apis.ELECT_LEADERS.key: Rule((Need(Op.ALTER, _CLUSTER),)),
    apis.ALTER_PARTITION_REASSIGNMENTS.key: Rule((Need(Op.ALTER, _CLUSTER),)),
    apis.LIST_PARTITION_REASSIGNMENTS.key: Rule((Need(Op.DESCRIBE, _CLUSTER),)),
    # Security
    apis.DESCRIBE_ACLS.key: Rule((Need(Op.DESCRIBE, _CLUSTER),)),
    apis.CREATE_ACLS.key: Rule((Need(Op.ALTER, _CLUSTER),)),
    apis.DELETE_ACLS.key: Rule((Need(Op.ALTER, _CLUSTER),)),
    apis.DESCRIBE_USER_SCRAM_CREDENTIALS.key: Rule((Need(Op.DESCRIBE, _CLUSTER),)),
    apis.ALTER_USER_SCRAM_CREDENTIALS.key: Rule((Need(Op.ALTER, _CLUSTER),)),
    apis.DESCRIBE_CLIENT_QUOTAS.key: Rule((Need(Op.DESCRIBE_CONFIGS, _CLUSTER),)),
    apis.ALTER_CLIENT_QUOTAS.key: Rule((Need(Op.ALTER_CONFIGS, _CLUSTER),)),
}

_FOR_BROKERS: Final = Rule((Need(Op.CLUSTER_ACTION, _CLUSTER),))


def rule_for(api: Api) -> Rule:
    """An API that the table does not know is for brokers alone."""
    return RULES.get(api.key, _FOR_BROKERS)
