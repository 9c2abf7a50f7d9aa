"""Records of a topic are archived once, unchanged."""

import random
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla import Admin, Producer, TopicPartition
from ottla.client.admin.configs import ConfigResource
from ottla.spark.archive import archiver as archiving
from ottla.spark.archive.cover import contents_of
from ottla.spark.archive.errors import ArchiveError, ArchiveInUse
from ottla.spark.archive.merging import TOGETHER
from ottla.spark.archive.names import Span
from ottla.spark.archive.places import FolderPlace
from ottla.spark.archive.tables import SCHEMA
from ottla.spark.archive.writing import merge, publish_fetched

from .conftest import DAY_MS, Source, archived, plain, values
from .test_cover import edges


def test_each_round_archives_new_records(source: Source, place: FolderPlace) -> None:
    source.write(range(100))
    assert source.archive(place).records == 100
    assert source.archive(place).records == 0
    source.write(range(100, 130))
    done = source.archive(place)
    assert done.records == 30
    assert sum(done.ends.values()) == 130
    assert values(place) == list(range(130))


def test_records_are_archived_unchanged(source: Source, place: FolderPlace, tmp_path: Path) -> None:
    sent = [
        (b"k", b"v", [("h", b"1"), ("h", None)]),
        (None, b"no key", []),
        (b"tombstone", None, []),
        (b"", b"", [("", b"")]),
    ]
    with Producer(source.servers, compression="zstd") as producer:
        for key, value, headers in sent:
            producer.send(source.topic, value, key=key, headers=headers, partition=0, timestamp_ms=1_700_000_000_123)
    source.archive(place)
    rows = plain(tmp_path / source.topic).to_pylist()
    assert [(row["key"], row["value"], [(h["key"], h["value"]) for h in row["headers"]]) for row in rows] == sent
    assert [(row["topic"], row["partition"], row["offset"], row["timestampType"]) for row in rows] == [
        (source.topic, 0, offset, 0) for offset in range(4)
    ]
    assert {row["timestamp"].timestamp() for row in rows} == {1_700_000_000.123}
    assert {row["date"] for row in rows} == {"2023-11-14"}


def test_files_are_sorted_and_their_statistics_have_the_offsets(
    source: Source, place: FolderPlace, tmp_path: Path
) -> None:
    source.write(range(50), partition=1)
    source.archive(place)
    (path,) = (tmp_path / source.topic).glob("date=*/*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    statistics = {group.column(i).path_in_schema: group.column(i).statistics for i in range(group.num_columns)}
    assert (statistics["offset"].min, statistics["offset"].max) == (0, 49)
    assert (statistics["partition"].min, statistics["topic"].max) == (1, source.topic)
    assert statistics["value"] is None
    assert group.sorting_columns == (pq.SortingColumn(4),)


def test_late_rows_are_in_the_folder_of_their_date(source: Source, place: FolderPlace, tmp_path: Path) -> None:
    chance = random.Random(1)
    days = [chance.randrange(20_000, 20_005) for _ in range(200)]
    with Producer(source.servers) as producer:
        for number, day in enumerate(days):
            producer.send(source.topic, b"%d" % number, partition=0, timestamp_ms=day * DAY_MS + number)
    source.archive(place)
    rows = plain(tmp_path / source.topic).to_pylist()
    assert [row["offset"] for row in rows] == list(range(200))
    assert all(date.fromisoformat(row["date"]) == row["timestamp"].date() for row in rows)
    assert len({row["date"] for row in rows}) == 5


def test_times_without_a_date_do_not_stop_it(source: Source, place: FolderPlace) -> None:
    with Admin(source.servers) as admin:
        most = {"message.timestamp.after.max.ms": str(2**63 - 1)}
        admin.alter_configs(ConfigResource.topic(source.topic), most)
    with Producer(source.servers) as producer:
        for number, time_ms in enumerate([10**17, 5, 10**17 + 10 * DAY_MS, 10**17]):
            producer.send(source.topic, b"%d" % number, partition=0, timestamp_ms=time_ms)
    source.archive(place)
    assert [offset for _, offset, _ in archived(place)] == [0, 1, 2, 3]


def test_small_stretches_are_merged_and_nothing_else_changes(
    source: Source, place: FolderPlace, tmp_path: Path
) -> None:
    for number in range(TOGETHER):
        source.write(range(number * 10, number * 10 + 10), partition=0, timestamp_ms=number % 2 * DAY_MS)
        done = source.archive(place)
    assert done.merged == TOGETHER
    assert len(place.sizes()) == 2
    assert values(place) == list(range(TOGETHER * 10))
    assert [row["offset"] for row in plain(tmp_path / source.topic).to_pylist()] == list(range(TOGETHER * 10))


def test_all_small_files_are_merged_on_request(source: Source, place: FolderPlace) -> None:
    for number in range(3):
        source.write(range(number * 10, number * 10 + 10), partition=0)
        source.archive(place)
    assert len(place.sizes()) == 3
    assert source.archive(place, merges_all=True).merged == 3
    assert len(place.sizes()) == 1
    assert values(place) == list(range(30))


def test_memory_is_bounded_by_publishing_earlier(
    source: Source, place: FolderPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archiving, "_FETCH_BYTES", 1000)
    monkeypatch.setattr(archiving, "_STRETCH_BYTES", 5000)
    with Producer(source.servers) as producer:
        for number in range(400):
            producer.send(source.topic, b"%d" % number, partition=number % 2)
            if number % 10 == 9:
                producer.flush()
    done = source.archive(place)
    assert done.stretches > 2
    assert values(place) == list(range(400))


def test_partitions_that_are_added_are_archived_from_their_beginning(source: Source, place: FolderPlace) -> None:
    source.write(range(10), partition=1)
    source.archive(place)
    with Admin(source.servers) as admin:
        admin.create_partitions(source.topic, 4)
    source.write(range(10, 20), partition=3)
    assert source.archive(place).records == 10
    assert values(place) == list(range(20))


def test_only_archived_records_are_trimmed_from_the_topic(source: Source, place: FolderPlace) -> None:
    at = TopicPartition(source.topic, 0)
    source.write(range(10), partition=0, timestamp_ms=1_000)
    source.write(range(10, 15), partition=0)
    assert source.archive(place, trims_older_than_ms=DAY_MS).trimmed_to == {at: 10}
    assert source.archive(place, trims_older_than_ms=0).trimmed_to == {at: 15}
    source.write(range(15, 20), partition=0)
    assert source.archive(place).records == 5
    assert values(place) == list(range(20))


def test_records_lost_before_archiving_stop_it_unless_gaps_are_allowed(source: Source, place: FolderPlace) -> None:
    source.write(range(10), partition=0)
    source.archive(place)
    source.write(range(10, 20), partition=0)
    with Admin(source.servers) as admin:
        admin.delete_records({TopicPartition(source.topic, 0): 15})
    with pytest.raises(ArchiveError, match="10 to 14 are gone"):
        source.archive(place)
    assert source.archive(place, allows_gaps=True).records == 5
    assert values(place) == [*range(10), *range(15, 20)]


def test_a_re_created_topic_is_not_added_to_the_old_archive(source: Source, place: FolderPlace) -> None:
    source.write(range(10), partition=0)
    source.archive(place)
    with Admin(source.servers) as admin:
        admin.delete_topic(source.topic)
        admin.create_topic(source.topic, partitions=2)
    source.write(range(20), partition=0)
    with pytest.raises(ArchiveError, match="re-created"):
        source.archive(place)


def test_two_cannot_archive_to_the_same_place(place: FolderPlace) -> None:
    with place.held(), pytest.raises(ArchiveInUse), place.held():
        pass


def test_its_progress_is_visible_as_a_group(source: Source, place: FolderPlace) -> None:
    source.write(range(10), partition=1)
    source.archive(place)
    with Admin(source.servers) as admin:
        offsets = admin.group_offsets(f"archive-{source.topic}")
    assert offsets[TopicPartition(source.topic, 1)].offset == 10


def test_offsets_without_records_are_archived_too(place: FolderPlace) -> None:
    """Offsets of end markers and of compacted records."""
    rows = pa.RecordBatch.from_pylist(
        [
            {"key": None, "value": b"1", "topic": "t", "partition": 0, "offset": 2, "timestamp": 0,
             "timestampType": 0, "headers": []}
        ],
        schema=SCHEMA,
    )  # fmt: skip
    with place.held() as hold:
        publish_fetched(hold, Span(0, 0, 2), [], b"", "2026-01-01")
        publish_fetched(hold, Span(0, 2, 4), [rows], b"", "2026-01-01")
        assert contents_of(place.sizes()).end(0) == 4
        assert archived(place) == [(0, 2, b"1")]
        assert merge(place, hold, b"", "2026-01-01", is_thorough=True) == 2
        assert archived(place) == [(0, 2, b"1")]
        assert edges(contents_of(place.sizes())) == [(0, 4)]


def test_rows_that_do_not_match_the_file_name_are_refused(place: FolderPlace) -> None:
    rows = pa.RecordBatch.from_pylist(
        [{"topic": "t", "partition": 0, "offset": 7, "timestamp": 0, "timestampType": 0, "headers": []}], schema=SCHEMA
    )
    with place.held() as hold, pytest.raises(ArchiveError, match="offsets 7 to 7 came where 0 to 4 were to come"):
        publish_fetched(hold, Span(0, 0, 5), [rows], b"", "2026-01-01")
    assert place.sizes() == {}
