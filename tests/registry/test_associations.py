"""Associations of topics with subjects."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.registry import changes, records
from ottla.registry.associating import associate, dissociate, mutate
from ottla.registry.association_requests import Deletion, Resource, operations_in, wanted_in
from ottla.registry.changes import Planned, Registration
from ottla.registry.errors import Refusal
from ottla.registry.given import references_in
from ottla.registry.model import Schema
from ottla.registry.state import State

TOPIC = {"resourceName": "orders", "resourceNamespace": "shop", "resourceId": "t1"}
STRONG_SUBJECT = ":.shop:orders-value"


class Registry:
    """The state, changed by the records of changes as if they were read from the topic."""

    def __init__(self) -> None:
        self.state = State()
        self.written: list[records.Record] = []

    def apply(self, planned: Planned[Any]) -> Any:
        for each in planned.records:
            self.written.append(each)
            change = records.decoded(each.key, each.value, 1000 + len(self.written))
            assert change is not None
            self.state.apply(change)
        return planned.answer

    def register(self, subject: str, text: str = '"int"', **more: Any) -> None:
        self.apply(changes.register(self.state, Registration(subject=subject, schema=Schema(text, **more))))

    def associate(self, *wishes: Any, is_create: bool = True, topic: Any = TOPIC, permit: Any = lambda _: None) -> Any:
        given = {**topic, "associations": list(wishes)}
        wanted = wanted_in(given, is_create=is_create, is_dry_run=False, context="")
        return self.apply(associate(self.state, wanted, permit))

    def delete(self, resource_id: str = "t1", *, is_cascading: bool = False) -> Any:
        resource = Resource(resource="", namespace="", resource_id=resource_id)
        wanted = Deletion(kinds=(), is_cascading=is_cascading)
        return self.apply(dissociate(self.state, resource, wanted, lambda _: None))


def code(wanted: Any, *given: Any, **more: Any) -> int:
    with pytest.raises(Refusal) as refused:
        wanted(*given, **more)
    return refused.value.code


def test_the_records_are_those_of_confluents_registry() -> None:
    registry = Registry()
    registry.register("shared")
    registry.associate({"subject": "shared"})
    written = registry.written[-1]
    assert written.key == (
        b'{"keytype":"ASSOC","tenant":"default","resourceName":"orders","resourceNamespace":"shop","resourceType":"topic",'
        b'"associationType":"value","subject":"shared","magic":0}'
    )
    [found] = registry.state.associations(subject="shared")
    assert written.value == (
        b'{"guid":"%s","tenant":"default","resourceName":"orders","resourceNamespace":"shop","resourceId":"t1",'
        b'"resourceType":"topic","associationType":"value","subject":"shared","lifecycle":"WEAK","frozen":false}'
        % found.guid.encode()
    )
    assert (found.created_ms, found.updated_ms) == (1002, 1002)
    registry.delete()
    assert registry.written[-1] == records.Record(written.key, None)
    assert registry.state.associations() == []


def test_a_weak_association_can_be_shared_and_keeps_its_subject_from_deletion() -> None:
    registry = Registry()
    registry.register("shared")
    for number in ("1", "2"):
        registry.associate({"subject": "shared"}, topic={**TOPIC, "resourceId": number, "resourceName": f"t{number}"})
    assert code(changes.delete_subject, registry.state, "shared", is_permanent=False) == 40904
    assert code(changes.delete_version, registry.state, "shared", 1, is_permanent=False) == 40907
    registry.register("shared", '["int", "string"]')
    assert changes.delete_version(registry.state, "shared", 1, is_permanent=False).answer == 1
    assert registry.associate({"subject": "shared"}, topic={**TOPIC, "resourceId": "1", "resourceName": "t1"}) == {
        **TOPIC,
        "resourceId": "1",
        "resourceName": "t1",
        "resourceType": "topic",
    }, "the same once more changes nothing"


def test_a_strong_association_comes_with_its_schema_and_takes_its_subject_along() -> None:
    registry = Registry()
    answer = registry.associate({"schema": {"schema": '"int"'}})
    assert answer["associations"][0]["lifecycle"] == "STRONG"
    assert answer["associations"][0]["schema"]["subject"] == STRONG_SUBJECT
    assert [each.version for each in registry.state.versions(STRONG_SUBJECT)] == [1]
    assert code(registry.associate, {"subject": STRONG_SUBJECT}, topic={**TOPIC, "resourceId": "2"}) == 42212
    other = {**TOPIC, "resourceId": "2", "resourceName": "other"}
    assert code(registry.associate, {"subject": STRONG_SUBJECT}, topic=other) == 40905
    uses = '{"type":"record","name":"U","fields":[{"name":"a","type":"A"}]}'
    reference = references_in([{"name": "A", "subject": "orders-value", "version": 1}])
    assert code(registry.register, ":.shop:uses", uses, references=reference) == 42201, "an int is no named type"
    assert code(registry.delete) == 40908
    registry.delete(is_cascading=True)
    assert registry.state.versions(STRONG_SUBJECT, with_deleted=True) == []
    assert registry.state.associations() == []


def test_a_subject_with_a_strong_association_cannot_be_referenced() -> None:
    registry = Registry()
    registry.associate({"schema": {"schema": '{"type":"enum","name":"A","symbols":["X"]}'}})
    uses = '{"type":"record","name":"U","fields":[{"name":"a","type":"A"}]}'
    reference = references_in([{"name": "A", "subject": "orders-value", "version": 1}])
    assert code(registry.register, ":.shop:uses", uses, references=reference) == 42205


@pytest.mark.parametrize(
    ("wish", "is_create"),
    [
        ({}, True),
        ({"subject": "shared", "associationType": "other"}, True),
        ({"subject": "shared", "lifecycle": "STRONG"}, True),
        ({"subject": "shared", "frozen": True}, True),
        ({"subject": "shared", "schema": {"schema": '"int"'}}, True),
        ({"subject": STRONG_SUBJECT}, True),
        ({"lifecycle": "STRONG"}, True),
        ({"schema": {"schema": '"int"'}, "lifecycle": "WEAK"}, True),
        ({"schema": {"schema": '"int"'}, "frozen": False}, True),
        ({"subject": "shared", "schema": {"schema": '"int"'}}, False),
        ({"lifecycle": "STRONG"}, False),
        ({"subject": ""}, False),
    ],
)
def test_impossible_associations_are_refused(wish: Any, is_create: bool) -> None:  # noqa: FBT001
    registry = Registry()
    registry.register("shared")
    assert code(registry.associate, wish, is_create=is_create) == 42212


def test_an_update_neither_moves_an_association_nor_mixes_lifecycles() -> None:
    registry = Registry()
    for name in ("shared", "other"):
        registry.register(name)
    registry.associate({"subject": "shared"})
    assert code(registry.associate, {"subject": "other", "lifecycle": "WEAK"}, is_create=False) == 42212
    assert code(registry.associate, {"subject": "other"}) == 40903
    assert code(registry.associate, {"schema": {"schema": '"int"'}, "associationType": "key"}) == 42212
    registry.associate({"subject": "other", "associationType": "key"}, is_create=False)
    assert {each.kind: each.subject for each in registry.state.associations()} == {"key": "other", "value": "shared"}


def test_nothing_is_changed_without_permission() -> None:
    registry = Registry()
    registry.register("shared")

    def refuse(subject: str) -> None:
        raise Refusal(40301, subject)

    assert code(registry.associate, {"subject": "shared"}, permit=refuse) == 40301


def test_each_request_of_a_batch_takes_effect_as_a_whole() -> None:
    registry = Registry()
    registry.register("shared")
    registry.associate({"subject": "shared"})
    requests = [
        {
            **TOPIC,
            "associations": [{"opType": "DELETE"}, {"opType": "CREATE", "subject": "none", "associationType": "key"}],
        },
        {
            **TOPIC,
            "resourceName": "new",
            "resourceId": "t2",
            "associations": [{"opType": "UPSERT", "subject": "shared"}],
        },
        {**TOPIC, "associations": [{"opType": "OTHER"}]},
    ]

    def read(given: Any) -> Any:
        return operations_in(given, is_dry_run=False, context="")

    results = registry.apply(mutate(registry.state, requests, read, lambda _: None))
    assert [each.get("error", {}).get("error_code") for each in results] == [40907, None, 42212]
    assert results[1]["result"]["associations"] == [
        {"subject": "shared", "associationType": "value", "lifecycle": "WEAK"}
    ]
    assert [each.resource_id for each in registry.state.associations()] == ["t2", "t1"]
