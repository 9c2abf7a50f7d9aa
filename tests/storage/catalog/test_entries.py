from __future__ import annotations

from msgspec.structs import replace

from ottla.core.ids import TopicId
from ottla.storage.catalog.catalog import edit_keys
from ottla.storage.catalog.entries import Topic

from .contract import ANN


def test_a_credential_does_not_show_its_secrets() -> None:
    shown = repr(ANN)

    assert (
        shown
        == "ScramCredential(user='ann', mechanism=<ScramMechanism.SCRAM_SHA_256: 1>, iterations=4096, expires_ms=None)"
    )


def test_entries_can_be_kept_in_sets_though_they_hold_maps() -> None:
    topic = Topic("orders", TopicId.random(), 1, {"a": "1"})

    assert hash(topic) == hash(replace(topic))
    assert topic != Topic("orders", topic.id, 1, {"a": "2"})


def test_an_edit_that_sets_and_deletes_the_same_key_sets_it() -> None:
    edited = edit_keys({"a": "2"}, {"a", "b"})

    assert edited({"a": "1", "b": "1", "c": "1"}) == {"a": "2", "c": "1"}
