"""Injects a fault into a cluster under load, and returns the anomalies of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from .checker import violations
from .faults import Faults
from .history import History
from .load import ConfluentWriter, OttlaWriter, Placed, Trial, read_all, under_load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .load import Writer
    from .processes import Cluster

    Happens = Callable[[Faults, list[Writer]], None]

BOTH: Final[tuple[type[Writer], ...]] = (ConfluentWriter, OttlaWriter)


class Shape(NamedTuple):
    """Configs of the topic under load."""

    partitions: int = 2
    factor: int = 3
    min_insync: int = 2
    configs: Mapping[str, str] = {}


def found_wrong(
    cluster: Cluster,
    folder: Path,
    happens: Happens,
    shape: Shape = Shape(),  # noqa: B008 - it never changes
    kinds: Sequence[type[Writer]] = BOTH,
) -> list[str]:
    processes, zookeeper = cluster
    history = History(folder / "history.jsonl")
    trial = Trial(processes.servers, happens.__name__, shape.partitions, history)
    trial.create_topic(shape.factor, shape.min_insync, shape.configs)
    faults = Faults(processes, Placed(trial), history, zookeeper)
    try:
        under_load(trial, [kind(trial) for kind in kinds], lambda writers: happens(faults, writers))
        return violations(history, read_all(trial))
    except BaseException:
        processes.recover()
        raise
    finally:
        history.close()
