"""What metadata costs as a cluster grows: the controller's own rules, and a real ZooKeeper, with simulated nodes."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.report import Row
from ottla.cluster.catalog_nodes import Layout
from ottla.cluster.config import ClusterConfig
from ottla.cluster.connecting import Connected, connect
from ottla.cluster.controller import Controller
from ottla.cluster.decisions import Step, Task, WantedTopic, all_steps, creations
from ottla.cluster.knowledge import Knowledge
from ottla.cluster.nodes import broker_data, broker_path
from ottla.cluster.operations import Create
from ottla.cluster.server import ZooKeeperServer, free_port
from ottla.cluster.state import BrokerInfo, ClusterView
from ottla.core.ids import Address, TopicId

PARTITIONS = 100_000
PER_TOPIC = 100
FACTOR = 3
NODES = (10, 100, 1000)
STORED = 20_000
"""Partitions that are really put into ZooKeeper: the cost of each is the same from then on."""


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def broker(node_id: int) -> BrokerInfo:
    return BrokerInfo(node_id, {"PLAINTEXT": Address(f"node-{node_id}.example", 9092)}, f"rack-{node_id % 3}")


def topics(partitions: int) -> dict[TopicId, WantedTopic]:
    wanted = [
        WantedTopic(TopicId.random(), f"topic-{number}", PER_TOPIC, FACTOR) for number in range(partitions // PER_TOPIC)
    ]
    return {topic.id: topic for topic in wanted}


def created(view: ClusterView, done: list[Step]) -> ClusterView:
    return view.with_partitions({step.state.key: step.state for step in done})  # type: ignore[union-attr]


def rules(nodes: int) -> Iterator[Row]:
    view = ClusterView({each: broker(each) for each in range(nodes)}, 0)
    wanted = topics(PARTITIONS)
    done: list[Step] = []
    placing = seconds(lambda: done.extend(creations(view, wanted.values())))
    full = created(view, done)
    dead = replace(full, brokers={each: held for each, held in full.brokers.items() if each != 1})
    changes: list[Step] = []
    electing = seconds(lambda: changes.extend(all_steps(Task(dead, wanted))))
    name = f"{nodes} nodes, {PARTITIONS} partitions"
    yield Row(what=f"{name}: place all", ours=f"{placing:.1f} s", theirs=f"{placing / PARTITIONS * 1e6:.0f} µs each")
    yield Row(what=f"{name}: a node dies", ours=f"{electing * 1000:.0f} ms", theirs=f"{len(changes)} changes")


@contextmanager
def zookeeper() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        server = ZooKeeperServer(Path(folder), free_port())
        server.start()
        try:
            yield server.address
        finally:
            server.stop()


def register(connected: Connected, nodes: int) -> None:
    entries = [
        Create(broker_path(each), broker_data(broker(each), f"folder-{each}"), is_ephemeral=True)
        for each in range(nodes)
    ]
    connected.store.commit(entries)


def stored(address: str) -> Iterator[Row]:
    config = ClusterConfig(zookeeper=address, connect_timeout_ms=600_000, session_timeout_ms=20_000)
    first = connect(config)
    register(first, NODES[-1])
    for number in range(STORED // PER_TOPIC):
        first.catalog.create_topic(f"topic-{number}", PER_TOPIC, layout=Layout(FACTOR))
    controller = Controller.elect(first.store, first.mirror, 0)
    assert controller is not None
    known = Knowledge()
    known.learn(dict(first.mirror.nodes))
    steps = creations(known.view, known.topics.values())
    writing = seconds(lambda: controller.carry_out(steps))
    yield Row(what=f"write {STORED} states", ours=f"{writing:.1f} s", theirs=f"{STORED / writing:.0f} a second")
    others: list[Connected] = []
    reading = seconds(lambda: others.append(connect(config)))
    yield Row(what=f"a node reads {STORED} states", ours=f"{reading:.1f} s", theirs=f"{STORED / reading:.0f} a second")
    learning = seconds(lambda: Knowledge().learn(dict(others[0].mirror.nodes)))
    yield Row(what=f"a node puts {STORED} states in order", ours=f"{learning:.2f} s")
    known = Knowledge()
    known.learn(dict(first.mirror.nodes))
    dead = replace(known.view, brokers={each: held for each, held in known.view.brokers.items() if each > 9})
    changes = all_steps(Task(dead, known.topics))
    electing = seconds(lambda: controller.carry_out(changes))
    told = seconds(lambda: others[0].mirror.refresh(["/controller"], 600))
    yield Row(what=f"10 nodes die: write {len(changes)} changes", ours=f"{electing:.2f} s")
    yield Row(what="another node knows them all", ours=f"{told * 1000:.0f} ms later")
    for one in (first, *others):
        one.close()


def rows() -> Iterator[Row]:
    for nodes in NODES:
        yield from rules(nodes)
    with zookeeper() as address:
        yield from stored(address)
