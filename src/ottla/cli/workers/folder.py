"""The data folder that workers share: the catalog of all of them, and a folder for each."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from ottla.cli.workers.adopting import adopt, is_of_one_broker
from ottla.cluster.builtin.keeper import Keeper
from ottla.cluster.nodes import PARTITIONS, from_json
from ottla.core.errors import DataDirError
from ottla.storage.folder.folder_lock import FolderLock
from ottla.storage.folder.meta_properties import WORKERS_FILE, may_be_in_an_empty_folder

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.cluster.builtin.tree import Tree
    from ottla.core.sealing import Sealer

_PATIENCE_S: Final = 15.0
_LOOK_AGAIN_S: Final = 0.05


class WorkersFolder:
    def __init__(self, path: Path, count: int, *, adopts: bool = False, sealer: Sealer | None = None) -> None:
        """Locks the folder. Raises DataDirError if it does not fit this number of workers.

        `adopts`: the folder of one broker becomes that of workers; its catalog may have been sealed.
        """
        self.path = path
        with ExitStack() as undoing:
            try:
                path.mkdir(parents=True, exist_ok=True)
                self._lock = FolderLock(path)
                undoing.callback(self._lock.release)
                if adopts and is_of_one_broker(path):
                    adopt(path, sealer)
                _refuse_others(path)
                _wait_for_former_workers(path)
                self.keeper = Keeper(path)
            except OSError as refused:
                raise DataDirError(f"{path} cannot be used: {refused.strerror}") from None
            undoing.callback(self.keeper.close)
            _refuse_fewer(path, self.keeper.tree, count)
            undoing.pop_all()

    def close(self) -> None:
        self.keeper.close()
        self._lock.release()


def _refuse_others(path: Path) -> None:
    if is_of_one_broker(path):
        raise DataDirError(
            f"{path} is the folder of one broker: serve it without --workers. Or start once with --adopt, and all that "
            "it holds becomes worker 0's; there is no way back"
        )
    if not (path / WORKERS_FILE).exists():
        strangers = sorted(each.name for each in path.iterdir() if not may_be_in_an_empty_folder(each.name))
        if strangers:
            raise DataDirError(
                f"{path} is not empty and not a folder of workers (it holds {strangers[0]!r} but no {WORKERS_FILE}); "
                "choose an empty folder"
            )


def _wait_for_former_workers(path: Path) -> None:
    """Workers of a killed supervisor exit automatically, and hold their folders until then."""
    deadline = time.monotonic() + _PATIENCE_S
    for folder in sorted(path.glob("worker-*")):
        while True:
            try:
                FolderLock(folder).release()
            except DataDirError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK_AGAIN_S)
            else:
                break


def _refuse_fewer(path: Path, tree: Tree, count: int) -> None:
    """Refuse fewer workers while the others hold partitions, which could not be read."""
    held = _holders(tree)
    missing = [worker for worker in held if worker >= count]
    if missing:
        raise DataDirError(
            f"{path} has partitions on worker {', '.join(map(str, missing))}: start it with --workers {max(held) + 1}. "
            f"To have fewer, first move them away: ottla cluster drain {' '.join(map(str, missing))}"
        )


def _holders(tree: Tree) -> list[int]:
    """The workers that hold a partition."""
    holders: set[int] = set()
    for topic in tree.children(PARTITIONS) or ():
        for partition in tree.children(f"{PARTITIONS}/{topic}") or ():
            node = tree.get(f"{PARTITIONS}/{topic}/{partition}")
            if node is not None:
                holders.update(from_json(node.data)["replicas"])
    return sorted(holders)
