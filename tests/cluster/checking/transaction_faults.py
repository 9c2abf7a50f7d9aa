"""Faults of a cluster that runs transactions: each function returns when the fault is over."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tests.broker.raw_client import RawClient

from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

from .networks import Way
from .processes import SESSION_MS, until

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ottla.wire.messages.metadata import MetadataResponse

    from .processes import Cluster, Node
    from .transacting import Scene, Worker

_TRANSACTION: Final = 1
_ANSWERED_S: Final = 0.9
"""Long enough for an immediate response, and shorter than the session timeout."""
_SEVERAL: Final = 3
_LONGER_THAN_A_SESSION_S: Final = SESSION_MS / 1000 * 2
_LONGER_THAN_REPLICAS_MAY_LAG_S: Final = 5.0
_SLOW_S: Final = 0.05


class TransactionFaults:
    def __init__(self, cluster: Cluster, scene: Scene, workers: Sequence[Worker]) -> None:
        processes, self._zookeeper = cluster
        self._nodes = processes.nodes
        self._network = processes.network
        self._links = processes.links
        self._scene = scene
        self._workers = workers

    # What happens

    def nothing(self) -> None:
        """No fault."""
        self._all_go_on()

    def kill_coordinator(self) -> None:
        self._kill(self._coordinator())

    def kill_leader(self) -> None:
        self._kill(self._nodes[self._metadata().topics[0].partitions[0].leader_id])

    def kill_controller(self) -> None:
        self._kill(self._nodes[self._metadata().controller_id])

    def kill_in_turn(self) -> None:
        for node in self._nodes.values():
            self._kill(node)

    def restart_in_turn(self) -> None:
        for node in self._nodes.values():
            self._scene.stories.event(f"node {node.number} stops")
            node.stop()
            self._all_go_on()
            self._back(node)

    def freeze_coordinator(self) -> None:
        """It wakes up believing that it still coordinates, with end markers yet to send."""
        self._freeze(self._coordinator())

    def freeze_leader(self) -> None:
        self._freeze(self._nodes[self._metadata().topics[0].partitions[0].leader_id])

    def kill_all(self) -> None:
        self._scene.stories.event("kill -9 of all")
        for node in self._nodes.values():
            node.kill()
        for node in self._nodes.values():
            node.start()
        for node in self._nodes.values():
            node.wait_until_ready()
        self._until_in_sync()

    def wipe_coordinator(self) -> None:
        """It restarts with an empty disk, and must load its decisions from other replicas."""
        node = self._coordinator()
        self._scene.stories.event(f"node {node.number} loses its disk")
        node.kill()
        node.wipe()
        self._all_go_on()
        self._back(node)

    def jump_clocks(self) -> None:
        """An hour ahead, an hour back: no transaction may time out because of it."""
        for seconds in (3600, -3600, 0):
            for node in self._nodes.values():
                assert node.clock is not None
                self._scene.stories.event(f"the clock of node {node.number} is {seconds} s off")
                node.clock.jump(seconds)
            self._all_go_on()

    def restart_zookeeper(self) -> None:
        """Stop it for longer than sessions last: there is no coordinator until it is back."""
        self._scene.stories.event("kill -9 of ZooKeeper")
        self._zookeeper.kill()
        time.sleep(_LONGER_THAN_A_SESSION_S)
        self._zookeeper.start()
        self._scene.stories.event("ZooKeeper is back")
        self._all_go_on()
        self._until_in_sync()

    def kill_coordinator_of_frozen_followers(self) -> None:
        """Its responses now are not replicated when it dies."""
        coordinator = self._coordinator()
        if any(worker.pause_s for worker in self._workers):
            # More than one: the first answers a fetch that followers had already sent.
            until(lambda: sum(each.is_about_to_end for each in self._workers) >= _SEVERAL, "several to be committed")
        followers = self._others(coordinator)
        for node in followers:
            node.freeze()
        self._scene.stories.event(f"all but node {coordinator.number} are frozen")
        time.sleep(_ANSWERED_S)
        coordinator.kill()
        self._scene.stories.event(f"kill -9 of node {coordinator.number}")
        for node in followers:
            node.thaw()
        self._all_go_on()
        self._back(coordinator)

    def cut_coordinator_from_followers(self) -> None:
        """It can replicate nothing, so it must acknowledge nothing."""
        coordinator = self._coordinator().number
        with self._cut(self._ways_between(coordinator, self._nodes.keys() - {coordinator})):
            time.sleep(_LONGER_THAN_REPLICAS_MAY_LAG_S)

    def cut_coordinator_one_way(self) -> None:
        """It receives everything, but nothing it sends arrives: neither at followers nor at leaders that need end
        markers."""
        coordinator = self._coordinator()
        with self._cut([Way(coordinator.number, node.host) for node in self._others(coordinator)]):
            time.sleep(_LONGER_THAN_REPLICAS_MAY_LAG_S)

    def cut_coordinator_from_zookeeper(self) -> None:
        """Others coordinate, while clients and followers still reach the one that believes it does."""
        assert self._network is not None
        with self._cut([Way(self._coordinator().number, self._network.host)]):
            time.sleep(_LONGER_THAN_A_SESSION_S)
            self._all_go_on()

    def cut_coordinator_from_leader(self) -> None:
        """Cut it from the leader of one partition, so that neither verification nor end markers get through."""
        coordinator = self._coordinator().number
        leaders = {each.leader_id for each in self._metadata().topics[0].partitions}
        with self._cut(self._ways_between(coordinator, [min(leaders - {coordinator})])):
            time.sleep(_LONGER_THAN_REPLICAS_MAY_LAG_S)

    def slow_all_links(self) -> None:
        """Between clients, nodes and ZooKeeper; then a coordinator dies while they are slow."""
        assert self._links is not None
        self._scene.stories.event("every link is slow")
        self._links.delay_s = _SLOW_S
        self._all_go_on()
        self._kill(self._coordinator())
        self._links.delay_s = 0.0
        self._scene.stories.event("links are fast again")

    # How

    def _others(self, node: Node) -> list[Node]:
        return [each for each in self._nodes.values() if each is not node]

    def _ways_between(self, one: int, others: Iterable[int]) -> list[Way]:
        assert self._network is not None
        return self._network.ways_between(one, others)

    @contextmanager
    def _cut(self, ways: list[Way]) -> Iterator[None]:
        """Cut the links, and wait until everything has recovered."""
        assert self._network is not None
        self._scene.stories.event(f"cut: {ways}")
        with self._network.cut(ways):
            yield
        self._scene.stories.event("the network is whole again")
        self._all_go_on()
        self._until_in_sync()

    def _kill(self, node: Node) -> None:
        self._scene.stories.event(f"kill -9 of node {node.number}")
        node.kill()
        self._all_go_on()
        self._back(node)

    def _freeze(self, node: Node) -> None:
        self._scene.stories.event(f"node {node.number} is frozen")
        node.freeze()
        try:
            time.sleep(_LONGER_THAN_A_SESSION_S)
            self._all_go_on()
        finally:
            self._scene.stories.event(f"node {node.number} goes on")
            node.thaw()
        self._all_go_on()
        self._until_in_sync()

    def _all_go_on(self) -> None:
        for worker in self._workers:
            worker.wait_for_more(2)

    def _back(self, node: Node) -> None:
        self._scene.stories.event(f"node {node.number} starts")
        node.start()
        node.wait_until_ready()
        self._until_in_sync()

    def _until_in_sync(self) -> None:
        count = len(self._nodes)
        until(
            lambda: all(len(each.isr_nodes) == count for each in self._metadata().topics[0].partitions), "all in sync"
        )

    def _metadata(self) -> MetadataResponse:
        with RawClient(next(iter(self._nodes.values())).address) as client:
            return client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=self._scene.topic),)), version=9)

    def _coordinator(self) -> Node:
        """The coordinator of the first worker."""
        request = FindCoordinatorRequest(key=f"{self._scene.topic}-{self._workers[0].name}", key_type=_TRANSACTION)
        with RawClient(next(iter(self._nodes.values())).address) as client:
            return self._nodes[client.ask(request, version=3).node_id]
