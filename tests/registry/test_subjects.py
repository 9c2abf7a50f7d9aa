"""Registration, deletion, configs and modes: records in `_schemas`, and the resulting state."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from ottla.registry import changes, records, settings
from ottla.registry.changes import Planned, Registration
from ottla.registry.errors import InvalidSchema, Refusal
from ottla.registry.lookup import look_up
from ottla.registry.model import JSON, Reference, Schema, Version
from ottla.registry.state import State

T = TypeVar("T")
V1 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
V2 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'


class Registry:
    """A registry state and its log."""

    def __init__(self) -> None:
        self.state = State()
        self.log: list[records.Record] = []

    def run(self, planned: Planned[T]) -> T:
        for record in planned.records:
            self.log.append(record)
            self._apply(self.state, record)
        return planned.answer

    @staticmethod
    def _apply(state: State, record: records.Record) -> None:
        change = records.decoded(*record)
        if change is not None:
            state.apply(change)

    def register(self, subject: str, text: str, **more: Any) -> Version:
        options = {key: more.pop(key) for key in ("id", "version", "normalize", "force") if key in more}
        return self.run(
            changes.register(self.state, Registration(subject=subject, schema=Schema(text, **more), **options))
        )

    def delete(self, subject: str, version: int | None = None, *, is_permanent: bool = False) -> Any:
        if version is None:
            return self.run(changes.delete_subject(self.state, subject, is_permanent=is_permanent))
        return self.run(changes.delete_version(self.state, subject, version, is_permanent=is_permanent))

    def restarted(self) -> State:
        """From the log as it is after compaction: the last record of each key, without tombstones."""
        last = {record.key: at for at, record in enumerate(self.log)}
        state = State()
        for at in sorted(last.values()):
            if self.log[at].value is not None:
                self._apply(state, self.log[at])
        return state


@pytest.fixture
def registry() -> Registry:
    return Registry()


def refusal(work: Any, *given: Any, **more: Any) -> int:
    with pytest.raises(Refusal) as refused:
        work(*given, **more)
    return refused.value.code


def test_records_are_those_of_confluents_registry(registry: Registry) -> None:
    registry.register("t-value", '"int"')
    registry.run(settings.update_config(registry.state, None, {"compatibility": "FULL"}))
    registry.run(settings.update_config(registry.state, "t-value", {"compatibility": "NONE"}))
    registry.run(settings.update_mode(registry.state, "t-value", "readonly", force=False))
    registry.run(settings.update_mode(registry.state, "t-value", "READWRITE", force=False))
    registry.register(":.c:s", '"int"')
    registry.delete("t-value")
    assert [(key.decode(), value and value.decode()) for key, value in registry.log] == [
        (
            '{"keytype":"SCHEMA","subject":"t-value","version":1,"magic":1}',
            '{"subject":"t-value","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}',
        ),
        ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
        ('{"keytype":"CONFIG","subject":"t-value","magic":0}', '{"subject":"t-value","compatibilityLevel":"NONE"}'),
        ('{"keytype":"MODE","subject":"t-value","magic":0}', '{"subject":"t-value","mode":"READONLY"}'),
        ('{"keytype":"MODE","subject":"t-value","magic":0}', '{"subject":"t-value","mode":"READWRITE"}'),
        ('{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}', '{"tenant":"default","context":".c"}'),
        (
            '{"keytype":"SCHEMA","subject":":.c:s","version":1,"magic":1}',
            '{"subject":":.c:s","version":1,"id":1,"schemaType":"AVRO","schema":"\\"int\\"","deleted":false}',
        ),
        ('{"keytype":"DELETE_SUBJECT","subject":"t-value","magic":0}', '{"subject":"t-value","version":1}'),
    ]
    assert records.noop() == (b'{"keytype":"NOOP","magic":0}', None)
    assert records.clear_subject(None)[0] == b'{"keytype":"CLEAR_SUBJECT","subject":null,"magic":0}'


def test_records_of_older_registries_are_read(registry: Registry) -> None:
    key = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":0}'
    change = records.decoded(key, b'{"subject":"s","version":1,"id":7,"schema":"\\"int\\""}')
    assert change is not None
    registry.state.apply(change)
    assert registry.register("s", '"int"').id == 7
    assert registry.register("t", '"long"').id == 8


@pytest.mark.parametrize("key", [b"", b"{}", b"nonsense", b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":9}'])
def test_a_malformed_record_is_reported(key: bytes) -> None:
    with pytest.raises(InvalidSchema):
        records.decoded(key, b"{}")


@pytest.mark.parametrize("keytype", ["SCHEMA", "CONFIG", "MODE", "DELETE_SUBJECT"])
def test_an_empty_value_deletes_as_null_does(keytype: str) -> None:
    """Karapace writes it."""
    key = f'{{"keytype":"{keytype}","subject":"s","version":1,"magic":1}}'.encode()
    assert records.decoded(key, b"") == records.decoded(key, None)


SORTED = r"{\"fields\":[{\"default\":\"\",\"name\":\"a\",\"type\":\"string\"}],\"name\":\"R\",\"type\":\"record\"}"


def test_an_avro_schema_that_karapace_stored_has_its_id_when_it_is_registered_again(registry: Registry) -> None:
    for version, subject in enumerate(("s", "t")):
        key = f'{{"keytype":"SCHEMA","subject":"{subject}","version":1,"magic":1}}'.encode()
        text = SORTED if version == 0 else SORTED.replace("string", "int").replace(r"\"\"", "0")
        value = f'{{"subject":"{subject}","version":1,"id":{version + 7},"schema":"{text}","deleted":false}}'.encode()
        change = records.decoded(key, value)
        assert change is not None
        registry.state.apply(change)
    ours = '{"type":"record","name":"R","fields":[{"name":"a","type":"string","default":""}]}'
    assert registry.state.versions("s")[0].schema.text == ours
    assert (registry.register("s", ours).id, registry.register("s", ours).version) == (7, 1)
    assert registry.register("u", ours).id == 7


def test_a_record_with_an_id_and_the_same_schema_in_another_layout_counts(registry: Registry) -> None:
    using = '{"type":"record","name":"R","fields":[{"name":"o","type":"Other"}]}'
    registry.register("other", '{"type":"record","name":"Other","fields":[]}')
    version = registry.register("s", using, references=(Reference("Other", "other", 1),))
    value = (
        f'{{"subject":"t","version":1,"id":{version.id},"references":[{{"name":"Other","subject":"other","version":1}}],'
        r'"schema":"{\"fields\":[{\"name\":\"o\",\"type\":\"Other\"}],\"name\":\"R\",\"type\":\"record\"}"}'
    )
    change = records.decoded(b'{"keytype":"SCHEMA","subject":"t","version":1,"magic":1}', value.encode())
    assert change is not None
    registry.state.apply(change)
    assert [each.id for each in registry.state.versions("t")] == [version.id]


def test_registering_again_gives_the_same_version(registry: Registry) -> None:
    first = registry.register("s", V1)
    assert registry.register("s", V1.replace(",", ", ")) == first
    assert registry.register("s", V2).version == 2
    assert registry.register("s", V1) == first


def test_one_schema_has_one_id_under_all_subjects_of_a_context(registry: Registry) -> None:
    assert registry.register("s", V1).id == registry.register("t", V1).id == 1
    assert registry.register("s", V2).id == 2
    assert registry.register(":.c:s", V2).id == 1


def test_an_incompatible_schema_is_refused_unless_it_is_forced(registry: Registry) -> None:
    registry.register("s", V1)
    assert refusal(registry.register, "s", '"int"') == 40901
    assert registry.register("s", '"int"', force=True).version == 2


def test_an_invalid_schema_is_refused(registry: Registry) -> None:
    assert refusal(registry.register, "s", '"nope"') == 42201
    assert refusal(registry.register, "s", "") == 42201
    assert refusal(registry.register, "s", '"int"', type="XML") == 42201


def test_soft_deletion_and_operations_after_it(registry: Registry) -> None:
    registry.register("s", V1)
    registry.register("s", V2)
    assert refusal(registry.delete, "s", 1, is_permanent=True) == 40407
    assert registry.delete("s", 1) == 1
    assert refusal(registry.delete, "s", 1) == 40406
    assert refusal(registry.delete, "s", is_permanent=True) == 40405
    assert [each.version for each in registry.state.versions("s")] == [2]
    assert registry.delete("s", -1) == 2
    assert refusal(registry.delete, "s") == 40404
    assert registry.delete("s", 1, is_permanent=True) == 1
    assert registry.delete("s", is_permanent=True) == [2]
    assert refusal(registry.delete, "s") == 40401
    assert refusal(registry.delete, "other", 1) == 40401


def test_a_missing_version_is_distinguished_from_a_missing_subject(registry: Registry) -> None:
    registry.register("s", V1)
    assert refusal(registry.delete, "s", 9) == 40402


def test_a_deleted_schema_keeps_its_id_when_it_is_registered_again(registry: Registry) -> None:
    first = registry.register("s", V1)
    registry.delete("s")
    again = registry.register("s", V1)
    assert (again.id, again.version) == (first.id, 2)


def test_ids_are_never_reused_even_after_permanent_deletion_and_compaction(registry: Registry) -> None:
    registry.register("s", V1)
    registry.register("s", V2)
    registry.delete("s")
    registry.delete("s", is_permanent=True)
    registry.state = registry.restarted()
    assert registry.state.subjects() == []
    assert registry.register("t", '"int"').id == 3


def test_the_state_after_compaction_is_the_same(registry: Registry) -> None:
    registry.register("a", V1)
    registry.register("a", V2)
    registry.register(":.c:b", V1)
    registry.delete("a", 1)
    registry.run(settings.update_config(registry.state, "a", {"compatibility": "FULL"}))
    after = registry.restarted()
    for subject in ("a", ":.c:b"):
        assert after.versions(subject, with_deleted=True) == registry.state.versions(subject, with_deleted=True)
    assert after.config("a") == {"compatibilityLevel": "FULL"}
    assert after.contexts() == [".", ".c"]
    assert after.largest_ids() == registry.state.largest_ids()


def test_a_second_schema_with_an_id_is_ignored(registry: Registry) -> None:
    registry.register("s", V1)
    other = Version("t", 1, 1, Schema('"int"'))
    change = records.decoded(*records.schema_record(other))
    assert change is not None
    registry.state.apply(change)
    assert registry.state.duplicates == 1
    assert registry.state.versions("t") == []


def test_references_keep_their_target(registry: Registry) -> None:
    registry.register("other", '{"type":"record","name":"Other","fields":[]}')
    using = '{"type":"record","name":"R","fields":[{"name":"o","type":"Other"}]}'
    version = registry.register("s", using, references=(Reference("Other", "other", -1),))
    assert version.schema.references == (Reference("Other", "other", 1),)
    assert [each.id for each in registry.state.referring("other", 1)] == [2]
    assert refusal(registry.delete, "other", 1) == 42206
    assert refusal(registry.delete, "other") == 42206
    assert refusal(registry.register, "t", using, references=(Reference("Other", "missing", 1),)) == 42201
    registry.delete("s")
    assert registry.delete("other") == [1]
    assert refusal(registry.delete, "other", is_permanent=True) == 42206


def test_a_schema_with_inlined_references_is_found(registry: Registry) -> None:
    registry.register("other", '{"type":"record","name":"Other","fields":[]}')
    using = '{"type":"record","name":"R","fields":[{"name":"o","type":"Other"}]}'
    version = registry.register("s", using, references=(Reference("Other", "other", 1),))
    inlined = '{"type":"record","name":"R","fields":[{"name":"o","type":{"type":"record","name":"Other","fields":[]}}]}'
    assert look_up(registry.state, "s", Schema(inlined)) == version


def test_a_schema_is_found_with_metadata_of_the_latest_version(registry: Registry) -> None:
    version = registry.register("s", V1, metadata={"properties": {"owner": "me"}})
    assert look_up(registry.state, "s", Schema(V1)) == version
    assert look_up(registry.state, "s", Schema(V2)) is None
    assert registry.register("s", V2).schema.metadata == {"properties": {"owner": "me"}}


def test_defaults_and_overrides_of_the_config_are_merged(registry: Registry) -> None:
    given = {
        "defaultMetadata": {"properties": {"a": "1", "b": "1"}},
        "overrideMetadata": {"properties": {"c": "3"}},
        "defaultRuleSet": {"domainRules": [{"name": "r", "type": "CEL"}]},
    }
    registry.run(settings.update_config(registry.state, "s", given))
    version = registry.register("s", V1, metadata={"properties": {"b": "2", "c": "2"}})
    assert version.schema.metadata == {"properties": {"a": "1", "b": "2", "c": "3"}}
    assert version.schema.rule_set == {"domainRules": [{"name": "r", "type": "CEL", "disabled": False}]}


def test_compatibility_groups_are_checked_separately(registry: Registry) -> None:
    registry.run(settings.update_config(registry.state, "s", {"compatibilityGroup": "major"}))
    registry.register("s", V1, metadata={"properties": {"major": "1"}})
    assert refusal(registry.register, "s", '"int"', metadata={"properties": {"major": "1"}}) == 40901
    assert registry.register("s", '"int"', metadata={"properties": {"major": "2"}}).version == 2


def test_a_config_is_that_of_the_subject_its_context_or_all(registry: Registry) -> None:
    def level(subject: str | None) -> str:
        return str(registry.state.config_in_scope(subject)["compatibilityLevel"])

    assert level("s") == level(None) == level(":.c:s") == "BACKWARD"
    registry.run(settings.update_config(registry.state, None, {"compatibility": "FULL"}))
    assert (level("s"), level(":.c:s")) == ("FULL", "BACKWARD")
    registry.run(settings.update_config(registry.state, ":.c:", {"compatibility": "NONE"}))
    assert (level("s"), level(":.c:s")) == ("FULL", "NONE")
    registry.run(settings.update_config(registry.state, ":.__GLOBAL:", {"compatibility": "FORWARD"}))
    assert (level(":.d:s"), level(":.c:s")) == ("FORWARD", "NONE")
    registry.run(settings.delete_config(registry.state, ":.c:"))
    assert level(":.c:s") == "FORWARD"


def test_invalid_configs_and_modes_are_refused(registry: Registry) -> None:
    state = registry.state
    assert refusal(settings.update_config, state, None, {"compatibility": "SOMETIMES"}) == 42203
    assert refusal(settings.update_mode, state, None, "SOMETIMES", force=False) == 42204
    assert refusal(settings.update_mode, state, "s", "FORWARD", force=False) == 42204
    assert refusal(settings.delete_config, state, "s") == 40401
    assert refusal(settings.delete_mode, state, "s", is_recursive=False) == 40401
    bad = {"defaultRuleSet": {"domainRules": [{"name": "1", "type": "CEL"}]}}
    assert refusal(settings.update_config, state, None, bad) == 42210


def test_a_read_only_subject_is_not_changed(registry: Registry) -> None:
    registry.register("s", V1)
    registry.run(settings.update_mode(registry.state, "s", "READONLY", force=False))
    assert refusal(registry.register, "s", V2) == 42205
    assert refusal(registry.delete, "s") == 42205
    assert refusal(settings.update_config, registry.state, "s", {"compatibility": "NONE"}) == 42205
    registry.run(settings.delete_mode(registry.state, "s", is_recursive=False))
    assert registry.register("s", V2).version == 2


def test_schemas_are_imported_with_their_ids_in_import_mode_only(registry: Registry) -> None:
    assert refusal(registry.register, "s", V1, id=40) == 42205
    registry.run(settings.update_mode(registry.state, "s", "IMPORT", force=False))
    assert refusal(registry.register, "s", V1) == 42205
    version = registry.register("s", V1, id=40, version=3)
    assert (version.id, version.version) == (40, 3)
    assert refusal(registry.register, "s", V2, id=40, version=4) == 42205
    assert registry.register("t", '"int"').id == 41


def test_import_mode_needs_an_empty_subject_unless_it_is_forced(registry: Registry) -> None:
    registry.register("s", V1)
    assert refusal(settings.update_mode, registry.state, "s", "IMPORT", force=False) == 42205
    registry.delete("s")
    registry.run(settings.update_mode(registry.state, "s", "IMPORT", force=False))
    assert registry.state.versions("s", with_deleted=True) == []
    registry.run(settings.update_mode(registry.state, None, "IMPORT", force=True))


def test_contexts_are_deleted_when_they_are_empty(registry: Registry) -> None:
    registry.register(":.c:s", V1)
    assert refusal(changes.delete_context, registry.state, ":.c:") == 42211
    registry.delete(":.c:s")
    registry.delete(":.c:s", is_permanent=True)
    registry.run(changes.delete_context(registry.state, ":.c:"))
    assert registry.state.contexts() == ["."]


def test_reserved_fields_are_checked_where_the_config_says_so(registry: Registry) -> None:
    registry.run(settings.update_config(registry.state, "s", {"validateFields": True}))
    registry.register("s", V1, metadata={"properties": {"confluent:reserved": "b"}})
    assert refusal(registry.register, "s", V2) == 40901
    assert refusal(registry.register, "s", V1, metadata={"properties": {"x": "y"}}) == 40901


def test_json_schemas_are_checked_leniently_where_the_config_says_so(registry: Registry) -> None:
    open_model, more = '{"type":"object"}', '{"type":"object","properties":{"a":{"type":"string"}}}'
    registry.register("s", open_model, type=JSON)
    assert refusal(registry.register, "s", more, type=JSON) == 40901
    registry.run(settings.update_config(registry.state, "s", {"compatibilityPolicy": "LENIENT"}))
    assert registry.register("s", more, type=JSON).version == 2


def test_a_snapshot_does_not_see_later_changes() -> None:
    registry = Registry()
    first = registry.register("s", V1)
    registry.register("t", V1)
    snapshot = registry.state.snapshot()
    assert registry.state.snapshot() is snapshot
    second = registry.register("s", V2)
    registry.register("u", '"int"')
    registry.delete("t")
    registry.delete("t", is_permanent=True)
    registry.run(settings.update_mode(registry.state, subject="s", mode="READONLY", force=False))

    assert snapshot.versions("s") == [first]
    assert snapshot.subjects() == ["s", "t"]
    assert [each.subject for each in snapshot.with_id(1, ".")] == ["s", "t"]
    assert (snapshot.next_id("s"), snapshot.mode("s")) == (2, None)
    assert registry.state.versions("s") == [first, second]
    assert [each.subject for each in registry.state.with_id(1, ".")] == ["s"]
    assert registry.state.snapshot().subjects() == ["s", "u"]
