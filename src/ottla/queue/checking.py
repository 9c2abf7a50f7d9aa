"""Verifying and repairing a queue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ottla.queue.damage import Damage
from ottla.queue.errors import InvalidChecksum, NotFound
from ottla.queue.files import overwrite_line, replace
from ottla.queue.folder import check_name
from ottla.queue.info_files import PopInfo, pop_line, queue_line
from ottla.queue.locks import Lock
from ottla.queue.part_reader import PartReader, Place
from ottla.queue.positions import committed_position
from ottla.queue.sealing import open_folder
from ottla.queue.tails import mend_tail

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from ottla.core.keys import KeyRing
    from ottla.queue.folder import QueueFolder


def verify(path: str | os.PathLike[str], name: str, keys: KeyRing | None = None) -> Iterator[Damage]:
    """All problems of a queue. Read-only; the queue may be in use."""
    folder = open_folder(Path(path), check_name("queue", name), keys)
    newest = folder.newest_part()
    if folder.written_part() is None:
        yield _problem(folder, newest, "info_queue is missing or damaged")
    parts = folder.parts()
    expected = range(parts[0], newest + 1) if parts else range(newest, newest + 1)
    for part in sorted({*expected, *parts}):
        yield from _verify_part(folder, part)
    for consumer in folder.consumers():
        info = folder.pop_info(consumer)
        if info is None:
            yield _problem(folder, 0, f"the commit of consumer {consumer} is damaged")


def _verify_part(folder: QueueFolder, part: int) -> Iterator[Damage]:
    try:
        reader = PartReader(folder, part)
    except NotFound:
        yield _problem(folder, part, "the part is missing", NotFound)
        return
    with reader:
        if folder.part_info(part) is None:
            yield _problem(folder, part, "info_push is missing or damaged")
        place = Place(0, 0)
        reader.refresh(place)
        while place.offset < reader.info.right_edge:
            messages = reader.read(place)
            if messages:
                place = Place(messages[-1].end, messages[-1].number)
            else:
                damage, place = reader.skip(place)
                yield damage


def repair(path: str | os.PathLike[str], name: str, keys: KeyRing | None = None) -> list[str]:
    """Repair the info files from the parts, with the writer stopped; returns what was done.

    Messages are not changed: readers skip damaged ones.
    """
    folder = open_folder(Path(path), check_name("queue", name), keys)
    if not folder.exists():
        raise NotFound(f"no queue {name} in {path}")
    lock = Lock(folder.lock, f"queue {name} in {path}")
    try:
        mended = [part for part in folder.parts_with_data() if mend_tail(folder, part, is_durable=True)]
        done = [f"rewrote info_push of part {part}" for part in mended]
        if folder.written_part() is None:
            newest = folder.newest_part()
            overwrite_line(folder.info_queue, queue_line(name, newest), is_durable=True)
            done.append(f"rewrote info_queue for part {newest}")
        done += _repair_consumers(folder)
    finally:
        lock.release()
    return done


def _repair_consumers(folder: QueueFolder) -> Iterator[str]:
    for consumer in folder.consumers():
        lock = Lock(folder.consumer_lock(consumer), f"consumer {consumer} of queue {folder.name}")
        try:
            position = committed_position(folder, consumer)
            settled = PopInfo(position.offset, position.number, position.part)
            if settled != folder.pop_info(consumer):
                line = pop_line(folder.name, consumer, settled)
                replace(folder.info_pop(consumer), line, is_durable=True)
                yield f"consumer {consumer} resumes at byte {settled.position} of part {settled.part}"
        finally:
            lock.release(remove=True)


def _problem(
    folder: QueueFolder, part: int, text: str, kind: type[InvalidChecksum | NotFound] = InvalidChecksum
) -> Damage:
    return Damage(queue=folder.name, part=part, offset=0, end=0, messages=0, text=text, kind=kind)
