"""Suggestions for unknown names."""

from ottla.core.closest import closest

KNOWN = ("messages", "partition", "key")


def test_a_misspelled_name_matches_the_right_one() -> None:
    assert closest("mesages", KNOWN) == "messages"
    assert closest("Key", KNOWN) == "key"


def test_an_unrelated_name_matches_nothing() -> None:
    assert closest("colour", KNOWN) is None
    assert closest("colour", ()) is None


def test_a_name_that_is_far_too_long_is_not_compared() -> None:
    assert closest("messages" * 1_000_000, KNOWN) is None
