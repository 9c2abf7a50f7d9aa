"""The shared folder of workers: ownership and adoption."""

from __future__ import annotations

from pathlib import Path

import pytest

import ottla
from ottla.cli.workers import adopting
from ottla.cli.workers.folder import WorkersFolder
from ottla.core.errors import DataDirError
from ottla.storage.folder.folder_lock import FolderLock

from .serving import consume, create, leaders, produce, serve, until


def one_broker(folder: Path) -> list[str]:
    """A folder in which one broker has left these values, of topic t."""
    values = [str(number) for number in range(20)]
    with ottla.Broker(folder) as broker:
        create(broker.bootstrap_servers, "t", 2)
        produce(broker.bootstrap_servers, "t", values)
        assert len(consume(broker.bootstrap_servers, "t", 20)) == 20
    return values


def test_the_folder_of_one_broker_is_refused_and_not_touched(tmp_path: Path) -> None:
    one_broker(tmp_path)
    before = sorted(tmp_path.iterdir())

    with pytest.raises(DataDirError, match=r"folder of one broker.*--adopt"):
        WorkersFolder(tmp_path, 2)

    assert sorted(tmp_path.iterdir()) == before


def test_the_folder_of_one_broker_can_be_adopted_by_workers(tmp_path: Path) -> None:
    values = one_broker(tmp_path / "data")

    with serve(tmp_path, 2, "--adopt") as served:
        until(lambda: leaders(served.address, "t") == [0, 0])
        produce(served.address, "t", ["new"])
        assert consume(served.address, "t", 1) == ["new"], "the group has its offsets"
        assert sorted(consume(served.address, "t", 21, "another")) == sorted([*values, "new"])
        create(served.address, "later", 2)
        assert 1 in leaders(served.address, "later")


def test_an_adoption_that_was_cut_short_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_broker(tmp_path)
    everything = {entry.name for entry in tmp_path.iterdir()} - {".lock"}
    rename = Path.rename
    for _ in range(len(everything) + 2):
        moves_left = [1]

        def rename_once_more(path: Path, target: Path, left: list[int] = moves_left) -> Path:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return rename(path, target)

        monkeypatch.setattr(Path, "rename", rename_once_more)
        try:
            adopting.adopt(tmp_path, None)
        except KeyboardInterrupt:
            with pytest.raises(DataDirError, match="folder of one broker"):
                WorkersFolder(tmp_path, 1)
            continue
        break
    else:
        raise AssertionError("it is never finished")

    assert {entry.name for entry in (tmp_path / "worker-0").iterdir()} == everything
    assert {entry.name for entry in tmp_path.iterdir()} == {".lock", "worker-0", "workers.sqlite"}
    WorkersFolder(tmp_path, 1).close()


def test_one_broker_refuses_the_folder_of_workers(tmp_path: Path) -> None:
    WorkersFolder(tmp_path, 1).close()

    with pytest.raises(DataDirError, match="belongs to workers"), ottla.Broker(tmp_path):
        pass


def test_a_foreign_folder_is_refused_by_workers(tmp_path: Path) -> None:
    (tmp_path / "thesis.doc").touch()

    with pytest.raises(DataDirError, match=r"thesis\.doc"):
        WorkersFolder(tmp_path, 1)


def test_two_supervisors_cannot_have_the_same_folder(tmp_path: Path) -> None:
    first = WorkersFolder(tmp_path, 1)

    with pytest.raises(DataDirError, match="in use"):
        WorkersFolder(tmp_path, 1)
    first.close()
    WorkersFolder(tmp_path, 1).close()


def test_a_worker_that_still_holds_its_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    WorkersFolder(tmp_path, 1).close()
    (tmp_path / "worker-0").mkdir()
    held = FolderLock(tmp_path / "worker-0")
    monkeypatch.setattr("ottla.cli.workers.folder._PATIENCE_S", 0)

    with pytest.raises(DataDirError, match="worker-0 is in use"):
        WorkersFolder(tmp_path, 1)

    held.release()
    WorkersFolder(tmp_path, 1).close()
