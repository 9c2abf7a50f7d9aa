from __future__ import annotations

import pytest

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions
from ottla.broker.configs.tables.broker_groups import GROUPS, TRANSACTIONS
from ottla.broker.configs.tables.broker_identity import IDENTITY
from ottla.broker.configs.tables.broker_limits import LIMITS, REPLICAS
from ottla.broker.configs.tables.broker_security import SECURITY
from ottla.broker.configs.tables.broker_topics import TOPICS, UPKEEP, topic_defaults
from ottla.broker.configs.tables.consumer_groups import CONSUMER_GROUPS
from ottla.broker.configs.tables.messages import MESSAGES
from ottla.broker.configs.tables.replication import REPLICATION
from ottla.broker.configs.tables.retention import RETENTION
from ottla.broker.configs.tables.schemas import SCHEMAS
from ottla.broker.configs.tables.segments import SEGMENTS
from ottla.broker.configs.tables.share_groups import SHARE_GROUPS
from ottla.broker.configs.tables.topic_tables import TABLES
from ottla.broker.configs.values import parse, to_text

TOPIC_TABLES = (RETENTION, SEGMENTS, MESSAGES, REPLICATION, SCHEMAS, TABLES)
OF_GROUPS = (GROUPS, CONSUMER_GROUPS, SHARE_GROUPS, TRANSACTIONS)
BROKER_TABLES = (IDENTITY, TOPICS, UPKEEP, LIMITS, REPLICAS, *OF_GROUPS, SECURITY)
ALL = [*TOPIC_DEFINITIONS.values(), *broker_definitions().values()]

PYTHON_TYPES = {
    ConfigType.BOOLEAN: bool,
    ConfigType.STRING: str,
    ConfigType.INT: int,
    ConfigType.SHORT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.LIST: tuple,
    ConfigType.PASSWORD: str,
}


def named(definition: Definition) -> str:
    return definition.name


@pytest.mark.parametrize("definition", ALL, ids=named)
def test_a_default_is_of_its_type_and_passes_its_own_rule(definition: Definition) -> None:
    if definition.default is None:
        return
    assert type(definition.default) is PYTHON_TYPES[definition.type]
    assert parse(definition, to_text(definition.default)) == definition.default


@pytest.mark.parametrize("definition", ALL, ids=named)
def test_documentation_is_in_whole_sentences(definition: Definition) -> None:
    assert definition.documentation.endswith(".")
    assert "  " not in definition.documentation


def test_no_config_is_defined_twice() -> None:
    assert len(TOPIC_DEFINITIONS) == sum(map(len, TOPIC_TABLES))
    defaults = topic_defaults(TOPIC_DEFINITIONS)
    assert len(broker_definitions()) == sum(map(len, BROKER_TABLES)) + len(defaults)


def test_configs_are_listed_in_the_order_of_their_names() -> None:
    assert list(TOPIC_DEFINITIONS) == sorted(TOPIC_DEFINITIONS)
    assert list(broker_definitions()) == sorted(broker_definitions())


def test_every_synonym_of_a_broker_config_is_a_broker_config() -> None:
    for definition in broker_definitions().values():
        assert set(definition.fallbacks) <= broker_definitions().keys()
        assert definition.default is None or not definition.fallbacks


def test_a_topic_config_and_its_broker_default_share_type_and_rule() -> None:
    followed = [(one, broker_definitions()[one.broker_name]) for one in TOPIC_DEFINITIONS.values() if one.broker_name]

    assert len(followed) == 28
    for topic_config, broker_config in followed:
        assert broker_config.type is topic_config.type
        assert broker_config.rule is topic_config.rule
        assert not broker_config.is_read_only


def test_only_passwords_are_sensitive() -> None:
    assert [one.name for one in ALL if one.is_sensitive] == ["ssl.key.password"]
