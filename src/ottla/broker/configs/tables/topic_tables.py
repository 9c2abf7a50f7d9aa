"""Topic configs: the Iceberg table of a topic, which `ottla lake run` maintains. Ottla's own.

The parsers of columns and partitioning are imported when such a config is set: few brokers need them.
"""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import Rule, at_least, one_of
from ottla.core.errors import ConfigError


def _is_ddl(value: str) -> bool:
    from ottla.columns.ddl import parse_columns

    try:
        return not value or bool(parse_columns(value).fields)
    except ConfigError:
        return False


def _is_partitioning(value: str) -> bool:
    from ottla.columns.partitioning import parse_partitioning

    try:
        parse_partitioning(value)
    except ConfigError:
        return False
    return True


TABLES: Final = (
    Definition(
        name="ottla.table.enable",
        type=ConfigType.BOOLEAN,
        default=False,
        is_hidden=True,
        documentation="Maintain the topic as an Iceberg table.",
    ),
    Definition(
        name="ottla.table.values",
        type=ConfigType.STRING,
        default="raw",
        rule=one_of("raw", "json", "registry"),
        is_hidden=True,
        documentation=(
            "How values become columns of the table: raw keeps their bytes, json needs ottla.table.columns, registry "
            "decodes by schema ids."
        ),
    ),
    Definition(
        name="ottla.table.columns",
        type=ConfigType.STRING,
        default="",
        rule=Rule("columns in Spark's DDL, such as id bigint, tags array<string>", _is_ddl),
        is_hidden=True,
        documentation="The columns of JSON values, in Spark's DDL.",
    ),
    Definition(
        name="ottla.table.mode",
        type=ConfigType.STRING,
        default="append",
        rule=one_of("append", "upsert"),
        is_hidden=True,
        documentation="append: a row for each record. upsert: a row for each key; a tombstone deletes it.",
    ),
    Definition(
        name="ottla.table.subject",
        type=ConfigType.STRING,
        default="",
        is_hidden=True,
        documentation="The subject of the values in the schema registry. Empty: the topic's name and -value.",
    ),
    Definition(
        name="ottla.table.partition.by",
        type=ConfigType.STRING,
        default="",
        rule=Rule("fields such as day(_timestamp), bucket(16, id), country", _is_partitioning),
        is_hidden=True,
        documentation="Partitioning of a new table, such as day(_timestamp), bucket(16, id).",
    ),
    Definition(
        name="ottla.table.commit.interval.ms",
        type=ConfigType.LONG,
        default=10_000,
        rule=at_least(100),
        is_hidden=True,
        documentation="How often new records are committed to the table.",
    ),
    Definition(
        name="ottla.table.allow.gaps",
        type=ConfigType.BOOLEAN,
        default=False,
        is_hidden=True,
        documentation="Continue the table if records were deleted from the topic before they were read.",
    ),
)
