"""A table, and this process as its only writer."""

from __future__ import annotations

import json
import logging
import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID

from ottla.columns.arrow_types import arrow_schema
from ottla.lake.covered import Covered, covered
from ottla.lake.errors import CatalogUnavailable, Fenced, LakeError, TableChanged
from ottla.lake.fencing import Verdict, judge, judge_claim
from ottla.lake.names import CONTENT, KEY, RECORDS, TOPIC, VALUES
from ottla.lake.snapshots import UPKEEP, expire
from ottla.lake.transactions import TableTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from ottla.columns.partitioning import PartitionField
    from ottla.columns.types import Struct
    from ottla.lake.names import TableName

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
_ATTEMPTS: Final = 20
"""Commits of other programs that one commit may meet."""
_RELOADS: Final = 5
_PAUSE_S: Final = 0.2
_COMPRESSION: Final = {"write.parquet.compression-codec": "zstd"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableDefinition:
    """A table to be opened, or created."""

    name: TableName
    topic: str
    content: str
    """See `names.CONTENT`."""
    schema: pa.Schema | None
    """Of a new table."""
    values: str = ""
    """See `names.VALUES`; empty for dead letters."""
    partition_by: tuple[PartitionField, ...] = ()
    keep_snapshots: int = 100
    key: tuple[str, ...] = ()
    """The columns of the key, if the table has one row for each; see `names.KEY`."""


class TopicTable:
    def __init__(self, catalog: Catalog, definition: TableDefinition) -> None:
        self._catalog = catalog
        self._definition = definition
        self._table: Table = None
        self._written = 0
        self._observer = ""
        """Names the files of a process that is not the writer."""
        self.covered = Covered()
        """By the last commit of this writer, or at its claim."""

    @property
    def name(self) -> TableName:
        return self._definition.name

    @property
    def table(self) -> Table:
        return self._table

    def claim(self, topic_id: str) -> Covered:
        """Create the table if it is missing, and fence its previous writer."""
        self._table = self._reach(self._opened)
        self._check_topic()
        writer = secrets.token_hex(8)
        for _ in range(_ATTEMPTS):
            before = covered(self._table)
            wanted = replace(
                before,
                topic_id=before.topic_id or topic_id,
                epoch=before.epoch + 1,
                writer=writer,
            )
            if self._try_commit(wanted, ()) or judge_claim(self._reloaded(), wanted) is Verdict.LANDED:
                self.covered = wanted
                _log.info("%s: writer epoch %d begins at %s", self.name, wanted.epoch, wanted.partitions)
                return wanted
        raise CatalogUnavailable(f"{self.name}: could not claim the table: other programs committed {_ATTEMPTS} times")

    def resume(self) -> Covered:
        """The offsets that the table has now; raises Fenced if it has another writer."""
        now = self._reloaded()
        if now.is_newer_writer(self.covered):
            raise self._fenced(now)
        self.covered = replace(now, epoch=self.covered.epoch, writer=self.covered.writer)
        return self.covered

    def observe(self) -> None:
        """Open the table beside its writer, without taking over."""
        self._table = self._reach(lambda: self._catalog.load_table(tuple(self.name)))
        self.covered = covered(self._table)
        self._observer = f"m{secrets.token_hex(8)}"

    def replace_files(self, removed: Sequence[DataFile], added: Sequence[DataFile]) -> bool:
        """Replace files by others with the same rows; False if another program committed first."""
        if self._try_commit(self.covered, added, removed):
            return True
        self._reloaded()
        return False

    def expire(self) -> None:
        """Forget the oldest snapshots now, without a new one."""
        change = TableTransaction(self._table)
        expired = expire(self._table, change, self._definition.keep_snapshots, slack=1)
        if not expired.snapshots:
            return
        head = AssertRefSnapshotId(ref="main", **{"snapshot-id": self._table.metadata.current_snapshot_id})
        try:
            self._table._do_commit(updates=change._updates, requirements=(*change._requirements, head))  # noqa: SLF001
        except CommitFailedException as refused:
            _log.info("%s: expiry refused: %s", self.name, refused)
            self._reloaded()
            return
        expired.remove_files(self._table)

    def arrow_schema(self) -> pa.Schema:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return schema_to_pyarrow(self._table.schema(), include_field_ids=False)

    def change_columns(self, columns: Struct) -> None:
        """Without a snapshot. Of two writers that do the same, one is refused, and finds it done."""

        def change() -> None:
            self._table.refresh()
            required = {each.name for each in self.arrow_schema() if not each.nullable}
            fields = [each.with_nullable(each.name not in required) for each in arrow_schema(columns)]
            with self._table.update_schema() as new:
                new.union_by_name(pa.schema(fields))

        self._reach(change)

    def write(self, rows: pa.Table) -> list[DataFile]:
        """Data files with these rows, which no snapshot has yet."""
        from ottla.lake.data_files import write_files

        self._written += 1
        # Unique, so that no file is overwritten: an epoch has one writer.
        writer = self._observer or f"{self.covered.epoch:06d}"
        return self._reach(lambda: write_files(self._table, rows, f"{writer}-{self._written:08d}"))

    def commit(self, files: Sequence[DataFile], partitions: dict[int, int], removed: Sequence[DataFile] = ()) -> None:
        """Append these files, which have all records up to these offsets, or replace others by them."""
        before = self.covered
        wanted = replace(before, partitions={**before.partitions, **partitions})
        for _ in range(_ATTEMPTS):
            if self._try_commit(wanted, files, removed):
                break
            now = self._reloaded()
            verdict = judge(now, before, wanted)
            if verdict is Verdict.REPEAT and removed:
                # The other program may have replaced the same files: find them again.
                raise TableChanged(f"{self.name} was changed by another program")
            if verdict is Verdict.LANDED:
                break
            if verdict is Verdict.FENCED:
                raise self._fenced(now)
            if verdict is Verdict.CHANGED:
                raise TableChanged(f"{self.name} was rolled back or replaced; continuing from {now.partitions}")
        else:
            raise CatalogUnavailable(f"{self.name}: other programs committed {_ATTEMPTS} times before this commit")
        self.covered = wanted

    def _try_commit(self, wanted: Covered, files: Sequence[DataFile], removed: Sequence[DataFile] = ()) -> bool:
        """Whether it is known to have landed. If not, nothing is known before the table is loaded again."""
        table = self._table
        change = TableTransaction(table)
        sequence = table.metadata.last_sequence_number + 1
        wanted = replace(wanted, sequence=sequence, first_sequence=wanted.first_sequence or sequence)
        properties = wanted.as_properties()
        update = change.update_snapshot(snapshot_properties=properties)
        snapshot = update.overwrite() if removed else update.merge_append()
        for file in files:
            snapshot.append_data_file(file)
        for file in removed:
            snapshot.delete_data_file(file)
        try:
            snapshot.commit()
            change.set_properties({**properties, **self._about()})
            expired = expire(table, change, self._definition.keep_snapshots)
            # Not by the transaction's own commit: that repeats a refused append on the new head.
            requirements = (*change._requirements, AssertTableUUID(uuid=table.metadata.table_uuid))  # noqa: SLF001
            table._do_commit(updates=change._updates, requirements=requirements)  # noqa: SLF001
        except CommitFailedException as refused:
            _log.info("%s: commit refused: %s", self.name, refused)
            snapshot._clean_all_uncommitted()  # noqa: SLF001 - as pyiceberg does it
            return False
        except Exception as unknown:  # noqa: BLE001 - each catalog and file system has other error classes
            _log.warning("%s: outcome of a commit unknown: %s: %s", self.name, type(unknown).__name__, unknown)
            return False
        expired.remove_files(table)
        return True

    def _reloaded(self) -> Covered:
        self._reach(self._table.refresh)
        return covered(self._table)

    def _reach(self, work: Callable[[], T]) -> T:
        """Repeat what only reads, or may be repeated."""
        for left in range(_RELOADS - 1, -1, -1):
            try:
                return work()
            except NoSuchTableError:
                raise LakeError(f"table {self.name} was dropped; start again to create it") from None
            except LakeError:
                raise
            except Exception as failed:
                if not left:
                    raise CatalogUnavailable(f"{self.name}: {type(failed).__name__}: {failed}") from failed
                time.sleep(_PAUSE_S)
        raise AssertionError

    def _opened(self) -> Table:
        name = (self.name.namespace, self.name.table)
        try:
            return self._catalog.load_table(name)
        except NoSuchTableError:
            return self._created(name)

    def _created(self, name: tuple[str, str]) -> Table:
        from pyiceberg.transforms import parse_transform

        wanted = self._definition
        self._catalog.create_namespace_if_not_exists((name[0],))
        properties = {**UPKEEP, **_COMPRESSION, **self._about()}
        try:
            with (
                self._catalog.create_table_transaction(name, wanted.schema, properties=properties) as creating,
                creating.update_spec() as spec,
            ):
                for field in wanted.partition_by:
                    spec.add_field(field.column, parse_transform(field.transform), field.name)
        except TableAlreadyExistsError:
            pass
        except CommitFailedException:
            pass  # created by another writer in the meantime
        return self._catalog.load_table(name)

    def _about(self) -> dict[str, str]:
        wanted = self._definition
        about = {TOPIC: wanted.topic, CONTENT: wanted.content, VALUES: wanted.values}
        about[KEY] = json.dumps(wanted.key) if wanted.key else ""
        return {name: value for name, value in about.items() if value}

    def _check_topic(self) -> None:
        found = self._table.properties.get(TOPIC, self._definition.topic)
        if found != self._definition.topic:
            raise LakeError(f"table {self.name} belongs to topic {found}, not {self._definition.topic}")
        if self._definition.content == RECORDS and (KEY in self._table.properties) != bool(self._definition.key):
            has, wanted = ("upsert", "append") if KEY in self._table.properties else ("append", "upsert")
            raise LakeError(
                f"table {self.name} was created in mode {has}, not {wanted}; drop or rename it, or write to another "
                "namespace (--namespace)"
            )

    def _fenced(self, now: Covered) -> Fenced:
        return Fenced(
            f"{self.name}: another writer has taken over (epoch {now.epoch}, this one had {self.covered.epoch}); "
            "only one `ottla lake run` may write a table"
        )
