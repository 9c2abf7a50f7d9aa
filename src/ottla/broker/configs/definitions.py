"""All configs by name.

TOPIC_DEFINITIONS       topic configs
broker_definitions()    broker configs, as in DescribeConfigs
group_definitions()     group configs
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition, Definitions, by_name
from ottla.broker.configs.tables.messages import MESSAGES
from ottla.broker.configs.tables.replication import REPLICATION
from ottla.broker.configs.tables.retention import RETENTION
from ottla.broker.configs.tables.schemas import SCHEMAS
from ottla.broker.configs.tables.segments import SEGMENTS
from ottla.broker.configs.tables.topic_tables import TABLES

__all__ = ["TOPIC_DEFINITIONS", "ConfigType", "Definition", "Definitions", "broker_definitions", "group_definitions"]

TOPIC_DEFINITIONS: Final[Definitions] = by_name(RETENTION, SEGMENTS, MESSAGES, REPLICATION, SCHEMAS, TABLES)


@cache
def broker_definitions() -> Definitions:
    """Created on first use: a broker can start and run without it."""
    from ottla.broker.configs.tables.broker_groups import GROUPS, TRANSACTIONS
    from ottla.broker.configs.tables.broker_identity import IDENTITY
    from ottla.broker.configs.tables.broker_limits import LIMITS, REPLICAS
    from ottla.broker.configs.tables.broker_security import SECURITY
    from ottla.broker.configs.tables.broker_topics import TOPICS, UPKEEP, topic_defaults
    from ottla.broker.configs.tables.consumer_groups import CONSUMER_GROUPS
    from ottla.broker.configs.tables.share_groups import SHARE_GROUPS

    of_topics = topic_defaults(TOPIC_DEFINITIONS)
    of_groups = (*GROUPS, *CONSUMER_GROUPS, *SHARE_GROUPS)
    return by_name(IDENTITY, TOPICS, UPKEEP, of_topics, LIMITS, REPLICAS, of_groups, TRANSACTIONS, SECURITY)


@cache
def group_definitions() -> Definitions:
    """Group configs, created on first use."""
    from ottla.broker.configs.tables.consumer_groups import OF_ONE_GROUP
    from ottla.broker.configs.tables.share_groups import OF_ONE_SHARE_GROUP

    return by_name(OF_ONE_GROUP, OF_ONE_SHARE_GROUP)
