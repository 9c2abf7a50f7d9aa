"""What the checker of compacted topics accepts."""

from __future__ import annotations

from .keys import KeyLedger

KEY = (1, "c2")


def ledger_with_a_value_at_13() -> KeyLedger:
    ledger = KeyLedger()
    ledger.sending(KEY, "first", ("k1", 8))
    ledger.acknowledged(KEY, 13, "first", ("k1", 8))
    return ledger


def test_a_key_without_its_last_value_is_lost() -> None:
    assert ledger_with_a_value_at_13().violations({1: {}})[0].startswith("key lost: c2")


def test_a_key_may_be_gone_after_a_delete_that_was_not_acknowledged() -> None:
    ledger = ledger_with_a_value_at_13()
    ledger.sending(KEY, None, ("k1", 16))
    assert ledger.violations({1: {}}) == []
    assert ledger.violations({1: {13: ("c2", "first")}}) == [], "nor must it be gone"


def test_a_key_is_lost_although_an_earlier_delete_was_acknowledged() -> None:
    ledger = KeyLedger()
    ledger.sending(KEY, None, ("k2", 16))
    ledger.acknowledged(KEY, 5, None, ("k2", 16))
    ledger.sending(KEY, "second", ("k1", 8))
    ledger.acknowledged(KEY, 13, "second", ("k1", 8))
    assert ledger.violations({1: {}})[0].startswith("key lost: c2")


def test_a_later_value_of_the_same_producer_is_stored_after_its_delete() -> None:
    ledger = KeyLedger()
    ledger.sending(KEY, None, ("k1", 16))
    ledger.sending(KEY, "second", ("k1", 17))
    ledger.acknowledged(KEY, 13, "second", ("k1", 17))
    assert ledger.violations({1: {}})[0].startswith("key lost: c2")


def test_a_deleted_key_must_not_come_back() -> None:
    ledger = ledger_with_a_value_at_13()
    ledger.sending(KEY, None, ("k1", 16))
    ledger.acknowledged(KEY, 24, None, ("k1", 16))
    assert ledger.violations({1: {}}) == []
    assert ledger.violations({1: {13: ("c2", "first")}})[0].startswith("key went back: c2")
