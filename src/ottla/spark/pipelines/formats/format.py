"""The base class of all formats of source records. No Spark is imported here: a file is checked without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

import msgspec

from ottla.columns.ddl import columns
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column

    from ottla.spark.pipelines.definition import Source
    from ottla.spark.pipelines.fields import Fields
    from ottla.spark.pipelines.formats.parser import Parser

Nulls = Literal["dead-letter", "skip", "keep", "delete"]


class SourceFormat(msgspec.Struct, frozen=True, kw_only=True, tag_field="format"):
    """`format` of `[source.NAME]`. A format is a subclass: its tag is the name, its fields are keys of the source."""

    summary: ClassVar[str] = ""
    """What it reads, for the documentation."""
    has_schema: ClassVar[bool] = True
    """Values are parsed by a schema; otherwise a row has what the record has."""
    has_deletes: ClassVar[bool] = False
    """Records may be deletes by their content, in the column _deleted."""
    default_nulls: ClassVar[Nulls] = "dead-letter"
    extra_columns: ClassVar[tuple[str, ...]] = ()
    """Columns beside those of every row and those of the schema; they begin with _."""

    @property
    def name(self) -> str:
        return str(self.__struct_config__.tag)

    def check(self, source: Source, fields: Fields) -> None:
        """Report keys that contradict each other: `fields.wrong("key", "what is wrong; what to do")`."""

    def columns(self, schema: str | None) -> dict[str, str] | None:
        """The columns of a schema and their types, in Spark's words; None if they are not known yet."""
        return None if schema is None else columns(schema)

    @property
    def is_pinned(self) -> bool:
        """Whether a schema that was found is kept for later runs."""
        return True

    def found_schema(self, source: Source) -> str | None:  # noqa: ARG002 - for subclasses
        """A schema from elsewhere than the records; None if they show it."""
        return None

    def infer(self, values: Sequence[bytes | None], sample: int) -> str:  # noqa: ARG002 - for subclasses
        """A schema that fits the first values."""
        raise ConfigError(f"no schema can be inferred from {self.name}; write one")

    def parsed(self, value: Column, schema: str) -> Column:
        """The value as a struct with the columns of the schema; null if it does not fit."""
        raise NotImplementedError(f"{type(self).__qualname__}.parsed")

    def fault(self, schema: str) -> Callable[[bytes | None, Sequence[str]], str]:  # noqa: ARG002 - for subclasses
        """A function for Spark's workers: why a value does not fit. It also gets the columns that are null."""
        name = self.name
        return lambda _value, _nulls: f"not valid {name}"

    def parser(self, source: Source) -> Parser:
        """How the records of a source are parsed. By default `parsed` says it, and `fault` why a record is not."""
        from ottla.spark.pipelines.formats.parser import Parser

        return Parser(source)
