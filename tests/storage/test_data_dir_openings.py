"""A log opened in steps: recovered in another thread."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.core.errors import StorageError
from ottla.core.sealing import Sealer
from ottla.storage.folder.data_dir import DataDir

from .data_dirs import CONFIG, ORDERS, SOME_ID
from .encrypting import ONE_KEY
from .making import batch, open_in, read_all, values

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.storage.folder.log_opening import LogOpening


def _in_a_thread(opening: LogOpening) -> LogOpening:
    thread = threading.Thread(target=opening.run)
    thread.start()
    thread.join()
    return opening


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_a_log_recovered_in_another_thread_shares_the_open_files(tmp_path: Path, is_encrypted: bool) -> None:  # noqa: FBT001
    folder = DataDir(tmp_path, ManualClock(), open_files=16, sealer=Sealer(ONE_KEY) if is_encrypted else None)
    log = folder.open_partition(ORDERS, CONFIG, SOME_ID)
    for number in range(100):
        log.append(batch(b"%d" % number * 50))
    assert len(log.segments) > 3
    folder.let_go(ORDERS)

    log = folder.finish_opening(_in_a_thread(folder.begin_opening(ORDERS, CONFIG, SOME_ID)))
    log.append(batch(b"new"))

    assert values(read_all(log)) == [*(b"%d" % number * 50 for number in range(100)), b"new"]
    assert folder.logs == {ORDERS: log}
    assert len(folder._files) > 3
    folder.close()
    assert open_in(tmp_path) == []


def test_a_cancelled_opening_keeps_the_partition_and_no_descriptors(tmp_path: Path) -> None:
    folder = DataDir(tmp_path, ManualClock())
    folder.open_partition(ORDERS, CONFIG, SOME_ID).append(batch(b"1"))
    folder.let_go(ORDERS)
    opening = folder.begin_opening(ORDERS, CONFIG, SOME_ID)
    with pytest.raises(StorageError, match="orders-0 is still being recovered"):
        folder.open_partition(ORDERS, CONFIG, SOME_ID)

    assert folder.cancel_opening(_in_a_thread(opening)) == []

    assert open_in(tmp_path) == [str(tmp_path / ".lock")]
    assert values(read_all(folder.open_partition(ORDERS, CONFIG, SOME_ID))) == [b"1"]
    folder.close()
