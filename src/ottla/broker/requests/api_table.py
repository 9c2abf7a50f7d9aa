"""Every API that the broker serves, one record each.

A record has the handler, the required permissions, the node to which requests from HTTP or other protocols are
forwarded in a cluster, and whether the API is audited. Versions and messages are declared in `wire`. Handlers, custom
rules and forwarding are imported on first use: hence the lambdas. An API in a separate module has its record there.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from ottla.broker import authorization, handlers
from ottla.broker.authorization.rules import Each, Need, Rule, configured_resource, listed_name, share_topic
from ottla.broker.requests.served_api import ServedApi
from ottla.broker.topic_names import topic_name
from ottla.core.lazy import LazyModule
from ottla.storage.catalog.entries import AclOperation as Op
from ottla.storage.catalog.entries import ResourceType
from ottla.wire import apis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.broker.peers import forwarding
else:
    forwarding = LazyModule("ottla.broker.peers.forwarding")

_TOPIC: Final = ResourceType.TOPIC
_GROUP: Final = ResourceType.GROUP
_CLUSTER: Final = ResourceType.CLUSTER
_TXN: Final = ResourceType.TRANSACTIONAL_ID
_TOKEN: Final = ResourceType.DELEGATION_TOKEN
_USER: Final = ResourceType.USER


def _on_cluster(operation: Op) -> Rule:
    return Rule((Need(operation, _CLUSTER),))


_READ_GROUP: Final = Need(Op.READ, _GROUP, "group_id")
_DELETE_GROUP: Final = Need(Op.DELETE, _GROUP, "group_id")
_WRITE_TRANSACTION: Final = Need(Op.WRITE, _TXN, "transactional_id")

_ALTER_CONFIGS: Final = Rule(
    each=Each(Op.ALTER_CONFIGS, _TOPIC, "resources", "responses", resource=configured_resource),
    also=((Op.ALTER_CONFIGS, _CLUSTER), (Op.ALTER_CONFIGS, _GROUP)),
)

_APIS: Final = (
    # All clients
    ServedApi(apis.API_VERSIONS, lambda: handlers.api_versions.api_versions, Rule()),
    ServedApi(apis.SASL_HANDSHAKE, lambda: handlers.sasl.sasl_handshake, Rule()),
    ServedApi(apis.SASL_AUTHENTICATE, lambda: handlers.sasl.sasl_authenticate, Rule()),
    # Topics
    ServedApi(
        apis.PRODUCE,
        lambda: handlers.produce.produce,
        Rule(custom=lambda: authorization.topics.produce, also=((Op.WRITE, _TOPIC), (Op.WRITE, _TXN))),
        forward=lambda: forwarding.PRODUCE,
        by_topic=("topic_data", "responses"),
    ),
    ServedApi(
        apis.FETCH,
        lambda: handlers.fetch.fetch,
        Rule(custom=lambda: authorization.topics.fetch, also=((Op.READ, _TOPIC), (Op.CLUSTER_ACTION, _CLUSTER))),
        forward=lambda: forwarding.FETCH,
        audit="read",
        by_topic=("topics", "responses"),
    ),
    ServedApi(
        apis.LIST_OFFSETS,
        lambda: handlers.offsets.list_offsets,
        Rule(each=Each(Op.DESCRIBE, _TOPIC, "topics", "topics")),
        forward=lambda: forwarding.OFFSETS_BY_LEADER,
        by_topic=("topics", "topics"),
    ),
    ServedApi(
        apis.OFFSET_FOR_LEADER_EPOCH,
        lambda: handlers.offsets.offset_for_leader_epoch,
        Rule(each=Each(Op.DESCRIBE, _TOPIC, "topics", "topics", topic_name)),
        by_topic=("topics", "topics"),
    ),
    ServedApi(
        apis.METADATA,
        lambda: handlers.metadata.metadata,
        Rule(
            custom=lambda: authorization.topics.metadata,
            also=((Op.DESCRIBE, _TOPIC), (Op.CREATE, _TOPIC), (Op.CREATE, _CLUSTER)),
        ),
        waits_for_cluster=True,
    ),
    ServedApi(
        apis.DESCRIBE_TOPIC_PARTITIONS,
        lambda: handlers.topic_partitions.describe_topic_partitions,
        Rule(custom=lambda: authorization.topics.describe_topic_partitions, also=((Op.DESCRIBE, _TOPIC),)),
    ),
    ServedApi(
        apis.CREATE_TOPICS,
        lambda: handlers.create_topics.create_topics,
        Rule(
            custom=lambda: authorization.topics.create_topics,
            also=((Op.CREATE, _TOPIC), (Op.CREATE, _CLUSTER), (Op.DESCRIBE_CONFIGS, _TOPIC)),
        ),
        audit="change",
        by_topic=("topics", "topics"),
    ),
    ServedApi(
        apis.DELETE_TOPICS,
        lambda: handlers.delete_topics.delete_topics,
        Rule(custom=lambda: authorization.topics.delete_topics, also=((Op.DELETE, _TOPIC),)),
        audit="change",
    ),
    ServedApi(
        apis.CREATE_PARTITIONS,
        lambda: handlers.create_topics.create_partitions,
        Rule(each=Each(Op.ALTER, _TOPIC, "topics", "results")),
        audit="change",
    ),
    ServedApi(
        apis.DELETE_RECORDS,
        lambda: handlers.delete_records.delete_records,
        Rule(each=Each(Op.DELETE, _TOPIC, "topics", "topics")),
        forward=lambda: forwarding.OFFSETS_BY_LEADER,
        audit="change",
        by_topic=("topics", "topics"),
    ),
    ServedApi(
        apis.DESCRIBE_PRODUCERS,
        lambda: handlers.transaction_admin.describe_producers,
        Rule(each=Each(Op.READ, _TOPIC, "topics", "topics")),
    ),
    # Groups
    ServedApi(
        apis.FIND_COORDINATOR,
        lambda: handlers.groups.find_coordinator,
        Rule(
            custom=lambda: authorization.groups.find_coordinator,
            also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TXN), (Op.CLUSTER_ACTION, _CLUSTER)),
        ),
    ),
    ServedApi(apis.JOIN_GROUP, lambda: handlers.groups.join_group, Rule((_READ_GROUP,), waits=True)),
    ServedApi(apis.SYNC_GROUP, lambda: handlers.groups.sync_group, Rule((_READ_GROUP,), waits=True)),
    ServedApi(apis.HEARTBEAT, lambda: handlers.groups.heartbeat, Rule((_READ_GROUP,))),
    ServedApi(apis.LEAVE_GROUP, lambda: handlers.groups.leave_group, Rule((_READ_GROUP,))),
    ServedApi(
        apis.OFFSET_COMMIT,
        lambda: handlers.group_offsets.offset_commit,
        Rule((_READ_GROUP,), Each(Op.READ, _TOPIC, "topics", "topics", topic_name)),
        forward=lambda: forwarding.TO_GROUP_COORDINATOR,
        by_topic=("topics", "topics"),
    ),
    ServedApi(
        apis.OFFSET_FETCH,
        lambda: handlers.group_offsets.offset_fetch,
        Rule(custom=lambda: authorization.groups.offset_fetch, also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC))),
        forward=lambda: forwarding.by_group("groups", lambda group: group.group_id, "groups"),
    ),
    ServedApi(
        apis.OFFSET_DELETE,
        lambda: handlers.group_offsets.offset_delete,
        Rule((_DELETE_GROUP,), Each(Op.READ, _TOPIC, "topics", "topics", always_asked={})),
        forward=lambda: forwarding.TO_GROUP_COORDINATOR,
        audit="change",
    ),
    ServedApi(
        apis.LIST_GROUPS,
        lambda: handlers.groups.list_groups,
        Rule(custom=lambda: authorization.groups.list_groups, also=((Op.DESCRIBE, _CLUSTER), (Op.DESCRIBE, _GROUP))),
        forward=lambda: forwarding.to_all_nodes("groups"),
    ),
    ServedApi(
        apis.DESCRIBE_GROUPS,
        lambda: handlers.groups.describe_groups,
        Rule(custom=lambda: authorization.groups.describe_groups, also=((Op.DESCRIBE, _GROUP),)),
        forward=lambda: forwarding.by_group("groups", str, "groups"),
    ),
    ServedApi(
        apis.DELETE_GROUPS,
        lambda: handlers.groups.delete_groups,
        Rule(each=Each(Op.DELETE, _GROUP, "groups_names", "results", listed_name)),
        forward=lambda: forwarding.by_group("groups_names", str, "results"),
        audit="change",
    ),
    ServedApi(
        apis.CONSUMER_GROUP_HEARTBEAT,
        lambda: handlers.consumer_groups.consumer_group_heartbeat,
        Rule((_READ_GROUP,), custom=lambda: authorization.groups.subscribe, also=((Op.DESCRIBE, _TOPIC),)),
    ),
    ServedApi(
        apis.CONSUMER_GROUP_DESCRIBE,
        lambda: handlers.consumer_groups.consumer_group_describe,
        Rule(
            custom=lambda: authorization.groups.describe_consumer_groups,
            also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC)),
        ),
        forward=lambda: forwarding.by_group("group_ids", str, "groups"),
    ),
    ServedApi(
        apis.SHARE_GROUP_HEARTBEAT,
        lambda: handlers.share_groups.share_group_heartbeat,
        Rule((_READ_GROUP,), custom=lambda: authorization.groups.subscribe, also=((Op.DESCRIBE, _TOPIC),)),
    ),
    ServedApi(
        apis.SHARE_GROUP_DESCRIBE,
        lambda: handlers.share_groups.share_group_describe,
        Rule(
            custom=lambda: authorization.share_groups.describe_share_groups,
            also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC)),
        ),
        forward=lambda: forwarding.by_group("group_ids", str, "groups"),
    ),
    ServedApi(
        apis.SHARE_FETCH,
        lambda: handlers.share_fetch.share_fetch,
        Rule(
            (_READ_GROUP,),
            Each(Op.READ, _TOPIC, "topics", "responses", topic_name, always_asked={"max_wait_ms": 0}),
            waits=True,
        ),
        audit="read",
    ),
    ServedApi(
        apis.SHARE_ACKNOWLEDGE,
        lambda: handlers.share_fetch.share_acknowledge,
        Rule((_READ_GROUP,), Each(Op.READ, _TOPIC, "topics", "responses", topic_name, always_asked={})),
    ),
    ServedApi(
        apis.INITIALIZE_SHARE_GROUP_STATE,
        lambda: handlers.share_state.initialize_share_group_state,
        _on_cluster(Op.CLUSTER_ACTION),
    ),
    ServedApi(
        apis.READ_SHARE_GROUP_STATE, lambda: handlers.share_state.read_share_group_state, _on_cluster(Op.CLUSTER_ACTION)
    ),
    ServedApi(
        apis.WRITE_SHARE_GROUP_STATE,
        lambda: handlers.share_state.write_share_group_state,
        _on_cluster(Op.CLUSTER_ACTION),
    ),
    ServedApi(
        apis.DELETE_SHARE_GROUP_STATE,
        lambda: handlers.share_state.delete_share_group_state,
        _on_cluster(Op.CLUSTER_ACTION),
    ),
    ServedApi(
        apis.READ_SHARE_GROUP_STATE_SUMMARY,
        lambda: handlers.share_state.read_share_group_state_summary,
        _on_cluster(Op.CLUSTER_ACTION),
    ),
    ServedApi(
        apis.DESCRIBE_SHARE_GROUP_OFFSETS,
        lambda: handlers.share_groups.describe_share_group_offsets,
        Rule(
            custom=lambda: authorization.share_groups.describe_share_group_offsets,
            also=((Op.DESCRIBE, _GROUP), (Op.DESCRIBE, _TOPIC)),
        ),
        forward=lambda: forwarding.by_group("groups", lambda group: group.group_id, "groups"),
    ),
    ServedApi(
        apis.ALTER_SHARE_GROUP_OFFSETS,
        lambda: handlers.share_groups.alter_share_group_offsets,
        Rule((_READ_GROUP,), Each(Op.READ, _TOPIC, "topics", "responses", share_topic)),
        forward=lambda: forwarding.TO_GROUP_COORDINATOR,
        audit="change",
    ),
    ServedApi(
        apis.DELETE_SHARE_GROUP_OFFSETS,
        lambda: handlers.share_groups.delete_share_group_offsets,
        Rule((_DELETE_GROUP,), Each(Op.READ, _TOPIC, "topics", "responses", share_topic, always_asked={})),
        audit="change",
    ),
    # Transactions
    ServedApi(
        apis.INIT_PRODUCER_ID,
        lambda: handlers.transactions.init_producer_id,
        Rule(
            custom=lambda: authorization.transactions.init_producer_id,
            also=((Op.WRITE, _TXN), (Op.IDEMPOTENT_WRITE, _CLUSTER), (Op.WRITE, _TOPIC)),
        ),
        forward=lambda: forwarding.TO_TRANSACTION_COORDINATOR,
    ),
    ServedApi(
        apis.ADD_PARTITIONS_TO_TXN,
        lambda: handlers.transactions.add_partitions_to_txn,
        Rule(
            custom=lambda: authorization.transactions.add_partitions_to_txn,
            also=((Op.WRITE, _TXN), (Op.WRITE, _TOPIC), (Op.CLUSTER_ACTION, _CLUSTER)),
        ),
    ),
    ServedApi(
        apis.ADD_OFFSETS_TO_TXN,
        lambda: handlers.transactions.add_offsets_to_txn,
        Rule((_WRITE_TRANSACTION, _READ_GROUP)),
    ),
    ServedApi(apis.END_TXN, lambda: handlers.transactions.end_txn, Rule((_WRITE_TRANSACTION,))),
    ServedApi(
        apis.WRITE_TXN_MARKERS, lambda: handlers.transaction_admin.write_txn_markers, _on_cluster(Op.CLUSTER_ACTION)
    ),
    ServedApi(
        apis.TXN_OFFSET_COMMIT,
        lambda: handlers.txn_offsets.txn_offset_commit,
        Rule((_WRITE_TRANSACTION, _READ_GROUP), Each(Op.READ, _TOPIC, "topics", "topics")),
    ),
    ServedApi(
        apis.DESCRIBE_TRANSACTIONS,
        lambda: handlers.transaction_admin.describe_transactions,
        Rule(
            custom=lambda: authorization.transactions.describe_transactions,
            also=((Op.DESCRIBE, _TXN), (Op.DESCRIBE, _TOPIC)),
        ),
        forward=lambda: forwarding.by_transaction("transactional_ids", "transaction_states"),
    ),
    # Its handler omits topics that may not be described, before it matches patterns.
    ServedApi(
        apis.LIST_TRANSACTIONS,
        lambda: handlers.transaction_admin.list_transactions,
        Rule(also=((Op.DESCRIBE, _TXN),)),
        forward=lambda: forwarding.to_all_nodes("transaction_states"),
    ),
    # The cluster
    ServedApi(
        apis.DESCRIBE_CLUSTER,
        lambda: handlers.cluster.describe_cluster,
        Rule(custom=lambda: authorization.cluster.describe_cluster),
        waits_for_cluster=True,
    ),
    ServedApi(
        apis.DESCRIBE_CONFIGS,
        lambda: handlers.configs.describe_configs,
        Rule(
            each=Each(Op.DESCRIBE_CONFIGS, _TOPIC, "resources", "results", resource=configured_resource),
            also=((Op.DESCRIBE_CONFIGS, _CLUSTER), (Op.DESCRIBE_CONFIGS, _GROUP)),
        ),
    ),
    ServedApi(apis.ALTER_CONFIGS, lambda: handlers.configs.alter_configs, _ALTER_CONFIGS, audit="change"),
    ServedApi(
        apis.INCREMENTAL_ALTER_CONFIGS,
        lambda: handlers.configs.incremental_alter_configs,
        _ALTER_CONFIGS,
        audit="change",
    ),
    ServedApi(
        apis.LIST_CONFIG_RESOURCES, lambda: handlers.configs.list_config_resources, _on_cluster(Op.DESCRIBE_CONFIGS)
    ),
    ServedApi(apis.DESCRIBE_LOG_DIRS, lambda: handlers.log_dirs.describe_log_dirs, _on_cluster(Op.DESCRIBE)),
    ServedApi(apis.ELECT_LEADERS, lambda: handlers.reassignments.elect_leaders, _on_cluster(Op.ALTER), audit="change"),
    ServedApi(
        apis.ALTER_PARTITION_REASSIGNMENTS,
        lambda: handlers.reassignments.alter_partition_reassignments,
        _on_cluster(Op.ALTER),
        audit="change",
    ),
    ServedApi(
        apis.LIST_PARTITION_REASSIGNMENTS,
        lambda: handlers.reassignments.list_partition_reassignments,
        _on_cluster(Op.DESCRIBE),
    ),
    # Security
    ServedApi(apis.DESCRIBE_ACLS, lambda: handlers.acls.describe_acls, _on_cluster(Op.DESCRIBE)),
    ServedApi(apis.CREATE_ACLS, lambda: handlers.acls.create_acls, _on_cluster(Op.ALTER), audit="change"),
    ServedApi(apis.DELETE_ACLS, lambda: handlers.acls.delete_acls, _on_cluster(Op.ALTER), audit="change"),
    ServedApi(
        apis.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda: handlers.users.describe_user_scram_credentials,
        _on_cluster(Op.DESCRIBE),
    ),
    ServedApi(
        apis.ALTER_USER_SCRAM_CREDENTIALS,
        lambda: handlers.users.alter_user_scram_credentials,
        _on_cluster(Op.ALTER),
        audit="change",
    ),
    # Authorized in their handlers: the required permission depends on the token's owner.
    ServedApi(
        apis.CREATE_DELEGATION_TOKEN,
        lambda: handlers.delegation_tokens.create,
        Rule(also=((Op.CREATE_TOKENS, _USER),)),
        audit="change",
    ),
    ServedApi(apis.RENEW_DELEGATION_TOKEN, lambda: handlers.delegation_tokens.renew, Rule(), audit="change"),
    ServedApi(apis.EXPIRE_DELEGATION_TOKEN, lambda: handlers.delegation_tokens.expire, Rule(), audit="change"),
    ServedApi(
        apis.DESCRIBE_DELEGATION_TOKEN,
        lambda: handlers.delegation_tokens.describe,
        Rule(also=((Op.DESCRIBE, _TOKEN), (Op.DESCRIBE_TOKENS, _USER))),
    ),
    ServedApi(
        apis.DESCRIBE_CLIENT_QUOTAS, lambda: handlers.quotas.describe_client_quotas, _on_cluster(Op.DESCRIBE_CONFIGS)
    ),
    ServedApi(
        apis.ALTER_CLIENT_QUOTAS,
        lambda: handlers.quotas.alter_client_quotas,
        _on_cluster(Op.ALTER_CONFIGS),
        audit="change",
    ),
)

_AT_HOME: Final = tuple(import_module(api.home).SERVED for api in apis.APIS.values() if api.home)
SERVED: Final[Mapping[int, ServedApi]] = {served.api.key: served for served in (*_APIS, *_AT_HOME)}
