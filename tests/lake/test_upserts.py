"""Tables with one row for each key: upserts, tombstones, and what is rewritten."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla import Producer
from ottla.columns.partitioning import parse_partitioning
from ottla.lake.covered import offsets
from ottla.lake.errors import LakeError
from ottla.lake.names import KEY
from ottla.lake.upserting import DELETED, latest
from ottla.lake.values import ValueSettings

from .conftest import Lake

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
UPSERT: dict[str, Any] = {"mode": "upsert"}
CRASHING = Path(__file__).with_name("crashing.py")
STRIDE = 1 if os.environ.get("LAKE_KILLS") else 7


def change(lake: Lake, changes: dict[str, int | None], partition: int = 0) -> None:
    with Producer(lake.servers) as producer:
        for key, number in changes.items():
            value = None if number is None else b'{"id":%d}' % number
            producer.send(lake.topic, value, key=key.encode(), partition=partition)


def state(lake: Lake) -> dict[str, int]:
    rows = lake.rows()
    keys = [each.decode() for each in rows["_key"].to_pylist()]
    assert len(set(zip(rows["_partition"].to_pylist(), keys, strict=True))) == len(keys)
    return dict(zip(keys, rows["id"].to_pylist(), strict=True))


def test_the_last_record_of_each_key_of_a_partition_counts() -> None:
    columns = {"_partition": [0, 0, 1, 0], "_key": [b"a", b"b", b"a", b"a"], "at": [1, 2, 3, 4]}
    changes = pa.table(columns).append_column(DELETED, pa.array([False, False, False, True]))
    assert latest(changes)["at"].to_pylist() == [2, 3, 4]


def test_a_newer_record_replaces_the_row_of_its_key_and_a_tombstone_removes_it(lake: Lake) -> None:
    with lake.writer(**UPSERT) as writer:
        change(lake, {"a": 1, "b": 2, "c": 3})
        writer.round()
        assert state(lake) == {"a": 1, "b": 2, "c": 3}
        change(lake, {"b": 20, "c": None, "d": 4})
        change(lake, {"d": 5, "nosuch": None})
        assert writer.round().rows == 5
        assert state(lake) == {"a": 1, "b": 20, "d": 5}
        change(lake, {"a": None, "b": None, "d": None})
        writer.round()
        assert state(lake) == {}
        change(lake, {"a": 7})
        writer.round()
    assert state(lake) == {"a": 7}
    assert json.loads(lake.table.properties[KEY]) == ["_partition", "_key"]
    assert offsets(lake.table) == {0: 12, 1: 0}
    assert not lake.table.inspect.delete_files().num_rows


def test_only_files_with_changed_keys_are_rewritten(lake: Lake) -> None:
    buckets = {**UPSERT, "partition_by": parse_partitioning("bucket(8, _key)")}
    with lake.writer(**buckets) as writer:
        change(lake, {f"k{each}": each for each in range(100)})
        writer.round()
        before = set(lake.table.inspect.files()["file_path"].to_pylist())
        change(lake, {"k7": 700})
        writer.round()
    after = set(lake.table.inspect.files()["file_path"].to_pylist())
    assert len(before) == 8
    assert len(before - after) == len(after - before) == 1
    assert state(lake) == {f"k{each}": 700 if each == 7 else each for each in range(100)}


def test_a_record_without_a_key_is_a_dead_letter(lake: Lake) -> None:
    lake.produce(b'{"id":1}')
    change(lake, {"a": 2})
    assert lake.append(**UPSERT).dead_letters == 1
    assert state(lake) == {"a": 2}
    assert lake.dead_letters()[0]["_error"] == "the record has no key"
    assert lake.append(ValueSettings(), **UPSERT).rows == 0


def test_a_compaction_by_another_program_is_respected(lake: Lake) -> None:
    with lake.writer(**UPSERT) as writer:
        change(lake, {"a": 1, "b": 2})
        writer.round()
        lake.table.overwrite(lake.table.scan().to_arrow())
        change(lake, {"a": 10})
        with pytest.raises(Exception, match="changed by another program"):
            writer.round()
        writer.round()
    assert state(lake) == {"a": 10, "b": 2}


def test_the_mode_of_a_table_cannot_be_changed(lake: Lake) -> None:
    change(lake, {"a": 1})
    lake.append()
    with pytest.raises(LakeError, match="created in mode append, not upsert"):
        lake.append(**UPSERT)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills_leave_the_last_value_of_each_key(lake: Lake) -> None:
    command = [sys.executable, str(CRASHING), lake.servers, lake.topic, str(lake.settings.folder), "upsert"]
    wanted: dict[str, int] = {}
    code, kills = -1, 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for step in range(1, 200, STRIDE):
            changes = {"same": step, f"k{step}": step, f"k{step - 2 * STRIDE}": None}
            change(lake, changes)
            wanted = {key: value for key, value in (wanted | changes).items() if value is not None}
            print(step, file=program.stdin)
            code = int(program.stdout.readline())
            if code == 0:
                break
            assert code == -signal.SIGKILL
            kills += 1
        program.stdin.close()
    assert code == 0
    assert kills >= 4
    assert state(lake) == wanted
