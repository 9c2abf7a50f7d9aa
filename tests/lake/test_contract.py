"""What a table says about its contents, and what it is called."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.lake.catalogs import LakeSettings
from ottla.lake.covered import Covered, SnapshotFacts, covered_by, parse
from ottla.lake.errors import LakeError
from ottla.lake.names import dead_letters_of, table_of
from ottla.lake.system_columns import SYSTEM_COLUMNS, column_name

FIRST = Covered("ab", {0: 10, 1: 5}, 1)
SECOND = Covered("ab", {0: 20, 1: 7}, 1)


@given(st.dictionaries(st.integers(0, 1000), st.integers(0, 2**62)), st.integers(0, 2**31))
def test_covered_offsets_are_read_back_as_they_were_written(partitions: dict[int, int], epoch: int) -> None:
    covered = Covered("00ff", partitions, epoch)
    assert parse(covered.as_properties()) == covered


def test_the_current_snapshot_says_what_is_covered() -> None:
    snapshots = {1: SnapshotFacts(None, FIRST.as_properties()), 2: SnapshotFacts(1, SECOND.as_properties())}
    assert covered_by(SECOND.as_properties(), 2, snapshots) == SECOND


def test_a_compaction_by_another_program_does_not_hide_the_offsets() -> None:
    snapshots = {1: SnapshotFacts(None, FIRST.as_properties()), 2: SnapshotFacts(1, {"operation": "replace"})}
    assert covered_by(FIRST.as_properties(), 2, snapshots) == FIRST


def test_offsets_survive_the_expiry_of_the_snapshots_that_had_them() -> None:
    properties = replace(SECOND, sequence=2, first_sequence=1).as_properties()
    dangling = {3: SnapshotFacts(2, {"operation": "replace"}, 3)}
    cut_off = {3: SnapshotFacts(None, {"operation": "replace"}, 3)}
    assert covered_by(properties, 3, dangling) == covered_by(properties, 3, cut_off) == SECOND


def test_a_rollback_takes_the_offsets_back_with_the_rows() -> None:
    snapshots = {1: SnapshotFacts(None, FIRST.as_properties(), 1), 2: SnapshotFacts(1, SECOND.as_properties(), 2)}
    assert covered_by(replace(SECOND, sequence=2).as_properties(), 1, snapshots) == FIRST


def test_a_rollback_to_a_snapshot_whose_offsets_have_expired_is_an_error() -> None:
    properties = replace(SECOND, sequence=4, first_sequence=1).as_properties()
    snapshots = {3: SnapshotFacts(2, {"operation": "replace"}, 3), 4: SnapshotFacts(3, SECOND.as_properties(), 4)}
    with pytest.raises(LakeError, match="rolled back to snapshot 3"):
        covered_by(properties, 3, snapshots)


def test_a_table_without_commits_of_the_writer_covers_nothing_but_keeps_the_epoch() -> None:
    foreign = {1: SnapshotFacts(None, {"operation": "append"}, 1)}
    properties = replace(SECOND, sequence=3, first_sequence=2).as_properties()
    assert covered_by({}, 1, foreign) == Covered()
    assert covered_by(properties, 1, foreign) == Covered(epoch=1)
    assert covered_by({}, None, {}) == Covered()


def test_tables_are_named_after_their_topics() -> None:
    assert str(table_of("orders")) == "topics.orders"
    assert str(table_of("shop.orders-eu", "raw")) == "raw.shop_orders-eu"
    assert str(dead_letters_of("shop.orders")) == "topics_dead_letters.shop_orders"


def test_fields_never_have_the_name_of_a_system_column() -> None:
    assert [column_name(each) for each in ("id", "_offset", "__offset", "_Key", "offset", "_", "_id")] == [
        "id", "__offset", "___offset", "__Key", "offset", "_", "_id",
    ]  # fmt: skip
    assert not {column_name(each) for each in SYSTEM_COLUMNS} & set(SYSTEM_COLUMNS)


def test_a_lake_is_a_folder_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    assert LakeSettings(folder=tmp_path).properties() == {
        "type": "sql",
        "uri": f"sqlite:///{tmp_path}/catalog.db",
        "warehouse": f"file://{tmp_path}/warehouse",
    }
    elsewhere = LakeSettings(
        folder=tmp_path, warehouse="s3://bucket/lake/", catalog={"type": "rest", "uri": "http://c"}
    )
    assert elsewhere.properties() == {"type": "rest", "uri": "http://c", "warehouse": "s3://bucket/lake"}
