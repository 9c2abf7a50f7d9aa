"""Model test: a catalog behaves like a dictionary, also after restarts."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from ottla.core.errors import ApiError, InvalidPartitions, InvalidTopic, TopicAlreadyExists
from ottla.storage.catalog.acl_filter import AclFilter
from ottla.storage.catalog.catalog import edit_keys
from ottla.storage.catalog.entries import Acl, AclOperation
from ottla.storage.catalog.sqlite import SqliteCatalog

from .contract import ANN_READS_ORDERS

topic_names = st.sampled_from(["a", "A", "a.b", "a_b", "a-b", "__a", "a/b"])
configs = st.dictionaries(st.sampled_from("xyz"), st.text(max_size=3))
principals = st.sampled_from(["User:ann", "User:bob"])
operations = st.sampled_from([AclOperation.READ, AclOperation.WRITE, AclOperation.ALL])


class CatalogModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.catalog = SqliteCatalog.open(self.folder)
        self.topics: dict[str, tuple[int, dict[str, str]]] = {}
        self.acls: set[Acl] = set()
        self.next_producer_id = 0

    def refusal_of(self, name: str, partitions: int) -> type[ApiError] | None:
        if name == "a/b":
            return InvalidTopic
        if name in self.topics:
            return TopicAlreadyExists
        if {name, *self.topics} >= {"a.b", "a_b"} and name in ("a.b", "a_b"):
            return InvalidTopic
        return InvalidPartitions if partitions < 1 else None

    @rule(name=topic_names, partitions=st.integers(0, 3), given=configs)
    def create(self, name: str, partitions: int, given: dict[str, str]) -> None:
        refusal = self.refusal_of(name, partitions)
        if refusal is not None:
            with pytest.raises(refusal):
                self.catalog.create_topic(name, partitions, given)
            return
        self.catalog.create_topic(name, partitions, given)
        self.topics[name] = (partitions, given)

    @rule(name=topic_names, partitions=st.integers(0, 5))
    def grow(self, name: str, partitions: int) -> None:
        if name not in self.topics:
            return
        held, given = self.topics[name]
        topic_id = self.catalog.view.topic(name).id
        if partitions <= held:
            with pytest.raises(InvalidPartitions):
                self.catalog.grow_topic(topic_id, partitions)
            return
        self.catalog.grow_topic(topic_id, partitions)
        self.topics[name] = (partitions, given)

    @rule(name=topic_names, put=configs, delete=st.sets(st.sampled_from("xyz")))
    def configure(self, name: str, put: dict[str, str], delete: set[str]) -> None:
        if name in self.topics:
            self.catalog.change_topic_configs(self.catalog.view.topic(name).id, edit_keys(put, delete))
            partitions, held = self.topics[name]
            kept = {key: value for key, value in held.items() if key not in delete}
            self.topics[name] = (partitions, kept | put)

    @rule(name=topic_names)
    def delete(self, name: str) -> None:
        if name in self.topics:
            self.catalog.delete_topic(self.catalog.view.topic(name).id)
            del self.topics[name]

    @rule(principal=principals, operation=operations)
    def allow(self, principal: str, operation: AclOperation) -> None:
        acl = replace(ANN_READS_ORDERS, principal=principal, operation=operation)
        self.catalog.add_acls([acl])
        self.acls.add(acl)

    @rule(principal=principals)
    def forget(self, principal: str) -> None:
        gone = {acl for acl in self.acls if acl.principal == principal}
        assert self.catalog.delete_acls(AclFilter(principal=principal)) == gone
        self.acls -= gone

    @rule(count=st.integers(1, 5000))
    def hand_out(self, count: int) -> None:
        assert self.catalog.next_producer_ids(count).first == self.next_producer_id
        self.next_producer_id += count

    @rule()
    def restart(self) -> None:
        before = self.catalog.view
        self.catalog.close()
        self.catalog = SqliteCatalog.open(self.folder)
        assert self.catalog.view == before

    @invariant()
    def the_view_is_what_was_done(self) -> None:
        view = self.catalog.view
        assert {name: (topic.partitions, topic.configs) for name, topic in view.topics.items()} == self.topics
        assert set(view.topics_by_id.values()) == set(view.topics.values())
        assert view.acls == self.acls

    def teardown(self) -> None:
        self.catalog.close()
        shutil.rmtree(self.folder)


TestCatalogModel = CatalogModel.TestCase
TestCatalogModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
