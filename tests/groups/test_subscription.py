import pytest

from ottla.groups.subscription import topics_in

from .making import subscription


def test_topics_are_read_whatever_follows_them() -> None:
    assert topics_in(subscription("a", "größe")) == frozenset({"a", "größe"})
    assert topics_in(subscription("a") + b"something of a later version") == frozenset({"a"})
    assert topics_in(b"\x00\x63" + subscription("a")[2:]) == frozenset({"a"})
    assert topics_in(subscription()) == frozenset()


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\x00\x01\x00\x00",
        b"\xff\xff\x00\x00\x00\x00",  # a negative version
        b"\x00\x01\xff\xff\xff\xff",  # no list of topics
        b"\x00\x01\x00\x00\x00\x01",
        b"\x00\x01\x00\x00\x00\x01\x00\x05abcd",
        b"\x00\x01\x00\x00\x00\x01\xff\xff",  # no name
        b"\x00\x01\x00\x00\x00\x01\x00\x01\xff",  # not UTF-8
        b"\x00\x01\x7f\xff\xff\xff" + bytes(100),
    ],
)
def test_other_bytes_are_not_a_subscription(broken: bytes) -> None:
    assert topics_in(broken) is None
