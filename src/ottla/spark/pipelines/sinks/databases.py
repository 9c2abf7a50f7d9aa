"""Sinks that are tables of databases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.spark.pipelines.changes.rules import ChangeRule
from ottla.spark.pipelines.keys import DeadLetterTopic
from ottla.spark.pipelines.sinks.sink import NO_DEAD_LETTERS
from ottla.spark.pipelines.sinks.stored import StoredSink, check_merge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from ottla.columns.evolution import TableColumns
    from ottla.spark.pipelines.databases.interface import Database
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.sinks.batch import MicroBatch
    from ottla.spark.pipelines.sinks.sink import Mode


class DatabaseSink(StoredSink, frozen=True, kw_only=True):
    table: str
    key: tuple[str, ...] = ()
    """Columns by which rows are replaced and deleted."""
    delete_when: str | None = None
    """An SQL condition: rows for which it holds delete the row with their key."""
    order_by: str | None = None
    """The column by which a row is older than the stored one, and is then left out."""
    dead_letters: DeadLetterTopic = NO_DEAD_LETTERS
    """The topic for rows that the database can never store; none stops the query at the first."""

    @property
    def place(self) -> str:
        return self.table

    @property
    def changes(self) -> ChangeRule:
        return ChangeRule(key=self.key, order_by=self.order_by, delete_when=self.delete_when, is_merge=bool(self.key))

    @property
    def dead_letter_topic(self) -> str:
        return self.dead_letters

    @classmethod
    def default_mode(cls, *, has_key: bool) -> Mode:
        return "update" if has_key else "append"

    def check(self, fields: Fields) -> None:
        if self.mode != "append" and not self.key:
            fields.wrong("mode", f"{self.mode} needs a key, so that rows can be replaced")
        check_merge(self, fields)

    def database(self) -> Database:
        raise NotImplementedError(f"{type(self).__qualname__}.database")

    def columns(self) -> TableColumns | None:
        return self.database().columns()

    def write(self, frame: DataFrame, batch: MicroBatch) -> int:
        return self.database().write(frame, batch)
