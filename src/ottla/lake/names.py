"""Names of tables, and of the properties in which a table and its snapshots say what they contain. Pure rules."""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_NAMESPACE: Final = "topics"
CATALOG_NAME: Final = "ottla"
"""Under which tables are listed in a SQL catalog; the same as that of pipelines."""

# Properties of a table.
TOPIC: Final = "ottla.topic"
"""The name of the topic, which the table's name may not say exactly."""
CONTENT: Final = "ottla.content"
"""What the rows are: RECORDS or DEAD_LETTERS."""
RECORDS: Final = "records"
DEAD_LETTERS: Final = "dead-letters"
VALUES: Final = "ottla.values"
"""How values become columns, as JSON; see `ottla.lake.values`. So that others decode later records in the same way."""
KEY: Final = "ottla.key"
"""Of a table with one row for each key: the columns of the key, as JSON."""

# In the summary of each snapshot that the writer commits and, changed by the same commit, in the table's properties.
OFFSETS: Final = "ottla.offsets"
"""The covered offsets, as JSON; see `ottla.lake.covered`."""
WRITER_EPOCH: Final = "ottla.writer.epoch"
"""The writer that may commit: a higher epoch fences all lower ones."""

WRITER_ID: Final = "ottla.writer.id"

_DEAD_LETTERS_SUFFIX: Final = "_dead_letters"


class TableName(NamedTuple):
    namespace: str
    table: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.table}"


def table_of(topic: str, namespace: str = DEFAULT_NAMESPACE) -> TableName:
    """A dot would be one more level of the namespace. Kafka rejects topics that differ only in `.` and `_`."""
    return TableName(namespace, topic.replace(".", "_"))


def dead_letters_of(topic: str, namespace: str = DEFAULT_NAMESPACE) -> TableName:
    """In a namespace beside the other, so that no topic has a table of the same name."""
    return TableName(namespace + _DEAD_LETTERS_SUFFIX, table_of(topic, namespace).table)
