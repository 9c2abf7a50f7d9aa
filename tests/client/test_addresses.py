"""Parsing of bootstrap addresses."""

from __future__ import annotations

import pytest

from ottla.client.addresses import parse_addresses
from ottla.core.errors import ConfigError
from ottla.core.ids import Address


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("localhost:9093", [("localhost", 9093)]),
        ("localhost", [("localhost", 9092)]),
        ("a:1,b:2", [("a", 1), ("b", 2)]),
        (" a:1 , b ,", [("a", 1), ("b", 9092)]),
        (["a:1", "b"], [("a", 1), ("b", 9092)]),
        (("a:1", "a:1"), [("a", 1)]),
        ("[::1]:9092", [("::1", 9092)]),
        ("[::1]", [("::1", 9092)]),
        ("::1", [("::1", 9092)]),
        ("[fe80::1%eth0]:19092", [("fe80::1%eth0", 19092)]),
        ("127.0.0.1:65535", [("127.0.0.1", 65535)]),
    ],
)
def test_hosts_and_ports_are_parsed_in_all_usual_forms(given: str | list[str], expected: list[tuple[str, int]]) -> None:
    assert list(parse_addresses(given)) == expected


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("", "no servers given"),
        ([], "no servers given"),
        (" , ", "no servers given"),
        ("localhost:", "invalid port"),
        ("localhost:kafka", "invalid port"),
        ("localhost:0", "invalid port"),
        ("localhost:65536", "invalid port"),
        ("localhost:\u0661", "invalid port"),
        ("localhost:-1", "invalid port"),
        ("a:1:2", "too many colons"),
        (":9092", "has no host"),
        ("[]:9092", "has no host"),
        ("a b:9092", "has no host"),
        ("a/b", "has no host"),
        ("http://localhost:9092", "is a URL"),
        ("SASL_SSL://localhost:9092", "is a URL"),
    ],
)
def test_an_invalid_address_is_refused_and_named(given: str | list[str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_addresses(given)


def test_an_address_is_written_as_it_is_read() -> None:
    for text in ("localhost:9092", "[::1]:9092"):
        [address] = parse_addresses(text)
        assert str(address) == text
    assert str(Address("::1", 1)) == "[::1]:1"
