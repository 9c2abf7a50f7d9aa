"""Records of a topic in its table: each once, with all that belongs to them."""

import datetime as dt
from contextlib import suppress
from typing import Any

import pytest

from ottla import Admin, Producer
from ottla.columns.partitioning import parse_partitioning
from ottla.lake.covered import covered, offsets
from ottla.lake.errors import Fenced, LakeError
from ottla.lake.names import TOPIC
from ottla.lake.values import ValueSettings

from .conftest import JSON, Lake

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
RAW = ValueSettings()


def test_values_of_json_are_columns_beside_those_of_the_record(lake: Lake) -> None:
    lake.produce(b'{"id":7,"name":"ann","more":1}', key=b"k", headers=[("h", b"v")], timestamp_ms=1_500)
    lake.produce(b'{"id":8}', partition=1)

    assert lake.append().rows == 2
    first, second = lake.rows().to_pylist()
    assert first == {
        "_partition": 0,
        "_offset": 0,
        "_timestamp": dt.datetime.fromtimestamp(1.5, dt.UTC),
        "_key": b"k",
        "_headers": [{"key": "h", "value": b"v"}],
        "id": 7,
        "name": "ann",
    }
    assert (second["_partition"], second["_key"], second["id"], second["name"]) == (1, None, 8, None)
    assert offsets(lake.table) == {0: 1, 1: 1}
    assert lake.table.properties[TOPIC] == lake.topic


def test_raw_values_are_kept_as_bytes_with_tombstones(lake: Lake) -> None:
    lake.produce(b"\xff\x00", None)
    assert lake.append(RAW).rows == 2
    assert lake.rows()["value"].to_pylist() == [b"\xff\x00", None]


def test_a_writer_continues_from_the_offsets_of_the_table(lake: Lake) -> None:
    lake.numbers(range(5))
    lake.append()
    lake.numbers(range(5, 9))
    lake.numbers(range(9, 12), partition=1)
    assert lake.append().rows == 7
    assert lake.append().rows == 0
    assert lake.ids() == list(range(12))


def test_a_round_without_records_commits_nothing(lake: Lake) -> None:
    lake.numbers(range(3))
    with lake.writer() as writer:
        writer.round()
        before = lake.table.current_snapshot().snapshot_id
        assert writer.round().rows == 0
    assert lake.table.current_snapshot().snapshot_id == before


def test_records_of_aborted_transactions_are_not_in_the_table(lake: Lake) -> None:
    with Producer(lake.servers, transactional_id=f"t-{lake.topic}") as producer:
        with suppress(ZeroDivisionError), producer.transaction():
            producer.send(lake.topic, b'{"id":1}', partition=0)
            raise ZeroDivisionError
        with producer.transaction():
            producer.send(lake.topic, b'{"id":2}', partition=0)
    lake.append()
    assert lake.ids() == [2]


def test_values_that_do_not_decode_are_dead_letters_with_the_reason(lake: Lake) -> None:
    lake.produce(b'{"id":1}', b"{", b'{"id":"x"}', b'{"id":4}', key=b"k")
    done = lake.append()
    assert (done.rows, done.dead_letters) == (2, 2)
    assert lake.ids() == [1, 4]
    broken, misfit = lake.dead_letters()
    assert (broken["_offset"], broken["value"], broken["_key"]) == (1, b"{", b"k")
    assert broken["_error"].startswith("invalid JSON")
    assert "$.id" in misfit["_error"]
    assert lake.append().dead_letters == 0


def test_dead_letters_whose_records_were_not_committed_are_not_repeated(lake: Lake, monkeypatch: Any) -> None:
    lake.produce(b'{"id":1}', b"bad", b'{"id":3}')
    with lake.writer() as writer:

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(writer._table, "commit", killed)
        with pytest.raises(KeyboardInterrupt):
            writer.round()
    assert len(lake.dead_letters()) == 1

    lake.produce(b"also bad", b'{"id":5}')
    lake.append()
    assert [each["_offset"] for each in lake.dead_letters()] == [1, 3]
    assert lake.ids() == [1, 3, 5]


def test_a_dead_letter_stays_one_if_it_could_be_decoded_later(lake: Lake, monkeypatch: Any) -> None:
    lake.produce(b'{"id":1,"name":{"a":1}}', b'{"id":"two"}')
    with lake.writer() as writer:
        monkeypatch.setattr(writer._table, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            writer.round()
    # The table has no columns yet but those of the first try: `id` as text decodes both.
    other = ValueSettings(format="json", columns="id bigint, name string, extra string")
    lake.append(other)
    assert lake.ids() == [1]
    assert [each["_offset"] for each in lake.dead_letters()] == [1]


def test_a_second_writer_fences_the_first(lake: Lake) -> None:
    lake.numbers(range(3))
    with lake.writer() as first, lake.writer() as second:
        first.round()
        lake.numbers(range(3, 6))
        second.round()
        lake.numbers(range(6, 9))
        with pytest.raises(Fenced, match="another writer has taken over"):
            first.round()
        second.round()
        with pytest.raises(Fenced):
            first.round()
    assert lake.ids() == list(range(9))
    assert covered(lake.table).epoch == 2


def test_a_compaction_of_another_program_neither_stops_nor_doubles_anything(lake: Lake) -> None:
    lake.numbers(range(5))
    with lake.writer() as writer:
        writer.round()
        rows = lake.table.scan().to_arrow()
        lake.table.overwrite(rows)  # as a compaction: the same rows in other files, without our properties
        lake.numbers(range(5, 8))
        assert writer.round().rows == 3
    assert lake.ids() == list(range(8))
    lake.table.overwrite(lake.table.scan().to_arrow())
    assert offsets(lake.table) == {0: 8, 1: 0}
    lake.numbers(range(8, 10))
    lake.append()
    assert lake.ids() == list(range(10))


def test_offsets_survive_the_expiry_of_all_other_snapshots(lake: Lake) -> None:
    lake.numbers(range(5))
    lake.append()
    lake.table.overwrite(lake.table.scan().to_arrow())
    table = lake.table
    current = table.current_snapshot().snapshot_id
    table.maintenance.expire_snapshots().by_ids(
        [each.snapshot_id for each in table.metadata.snapshots if each.snapshot_id != current]
    ).commit()
    assert len(lake.table.metadata.snapshots) == 1
    lake.numbers(range(5, 8))
    lake.append()
    assert lake.ids() == list(range(8))


def test_rows_that_a_rollback_took_out_are_appended_again(lake: Lake) -> None:
    lake.numbers(range(5))
    lake.append()
    first = lake.table.current_snapshot().snapshot_id
    lake.numbers(range(5, 8))
    lake.append()
    lake.table.manage_snapshots().rollback_to_snapshot(first).commit()
    lake.append()
    assert lake.ids() == list(range(8))


def test_new_columns_are_added_and_types_are_widened(lake: Lake) -> None:
    lake.append(ValueSettings(format="json", columns="id int, name string"))
    lake.produce(b'{"id":1,"name":"a"}')
    lake.append(ValueSettings(format="json", columns="id int, name string"))
    lake.produce(b'{"id":3000000000,"more":["x"]}')
    lake.append(ValueSettings(format="json", columns="more array<string>, id bigint"))
    found = lake.rows().select(["id", "name", "more"]).to_pylist()
    assert found == [{"id": 1, "name": "a", "more": None}, {"id": 3000000000, "name": None, "more": ["x"]}]


def test_a_change_of_a_type_that_is_not_safe_stops_with_the_reason(lake: Lake) -> None:
    lake.append()
    with pytest.raises(LakeError, match="id bigint cannot become string"):
        lake.append(ValueSettings(format="json", columns="id string"))


def test_a_table_can_be_partitioned_by_transforms(lake: Lake) -> None:
    day_ms = 24 * 3600 * 1000
    for day in range(3):
        lake.produce(b'{"id":%d,"name":"x%d"}' % (day, day), timestamp_ms=day * day_ms + 1)
    lake.append(partition_by=parse_partitioning("day(_timestamp), bucket(4, id)"))
    lake.numbers(range(3, 5))
    lake.append(partition_by=parse_partitioning("day(_timestamp), bucket(4, id)"))

    files = lake.table.inspect.files().to_pylist()
    assert {each["partition"]["_timestamp_day"] for each in files} >= {dt.date(1970, 1, day) for day in (1, 2, 3)}
    assert lake.ids() == list(range(5))
    found = lake.table.scan(
        row_filter="_timestamp >= '1970-01-02T00:00:00+00:00' and _timestamp < '1970-01-03T00:00:00+00:00'"
    )
    assert found.to_arrow()["id"].to_pylist() == [1]


def test_a_topic_that_was_recreated_does_not_continue_the_table(lake: Lake) -> None:
    lake.numbers(range(3))
    lake.append()
    with Admin(lake.servers) as admin:
        admin.delete_topic(lake.topic)
        admin.create_topic(lake.topic, partitions=1)
    with pytest.raises(LakeError, match="deleted and re-created"):
        lake.append()


def test_records_that_were_deleted_before_they_were_read_stop_it_unless_gaps_are_allowed(lake: Lake) -> None:
    from ottla.core.ids import TopicPartition

    lake.numbers(range(3))
    lake.append()
    lake.numbers(range(3, 8))
    with Admin(lake.servers) as admin:
        admin.delete_records({TopicPartition(lake.topic, 0): 6})
    with pytest.raises(LakeError, match=r"records 3 to 5 were deleted"):
        lake.append()
    lake.append(JSON, allows_gaps=True)
    assert lake.ids() == [0, 1, 2, 6, 7]


def test_old_snapshots_expire_with_their_files_and_every_row_stays(lake: Lake) -> None:
    with lake.writer(keep_snapshots=3) as writer:
        for number in range(30):
            lake.numbers(range(number, number + 1))
            writer.round()
    table = lake.table
    assert len(table.metadata.snapshots) <= 3 + 10
    metadata = list((lake.settings.folder / "warehouse").rglob("snap-*.avro"))
    assert len(metadata) <= 2 * (3 + 10)  # of two tables
    assert lake.ids() == list(range(30))
