"""Conditions, templates and client options of `ottla produce` and `ottla consume`."""

from __future__ import annotations

import pytest

from ottla.cli.messages.client_options import ClientChoices, client_choices
from ottla.cli.messages.filters import condition
from ottla.cli.messages.lines import Shown
from ottla.cli.messages.templates import template
from ottla.client.config import ConsumerConfig, ProducerConfig
from ottla.core.errors import ConfigError

VALUE = b'{"user": {"name": "ann", "ok": true}, "items": [{"sku": "A1"}], "n": 7, "x.y": null}'
RECORD = Shown(
    topic="orders",
    partition=2,
    offset=41,
    timestamp=1000,
    is_log_append_time=False,
    key=b"c1",
    value=VALUE,
    headers=(("trace", b"7"), ("empty", None)),
)
BINARY = Shown(
    topic="t", partition=0, offset=0, timestamp=0, is_log_append_time=False, key=None, value=b"\xff", headers=()
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("key=c1", True),
        ("key = c1", True),
        ("key!=c1", False),
        ("key~^c", True),
        ("key!~^c", False),
        ("value~ann", True),
        ("offset<42", True),
        ("offset>=42", False),
        ("partition=2", True),
        ("timestamp>999", True),
        ("header.trace", True),
        ("header.trace=7", True),
        ("header.trace>6", True),
        ("header.span", False),
        ("header.span!=7", False),
        ("$.user.name=ann", True),
        ("$.user.ok=true", True),
        ("$.items[0].sku~^A", True),
        ("$.items[1].sku", False),
        ("$.items.sku", False),
        ("$.n=7.0", True),
        ("$.n>6.5", True),
        ("$.user.name>6", False),
        ("$['x.y']=null", True),
        ('$.user={"name":"ann","ok":true}', True),
    ],
)
def test_a_condition_holds_for_a_record_or_not(text: str, holds: bool) -> None:
    assert condition(text)(RECORD) is holds
    assert condition("$.user")(BINARY) is False
    assert condition("key!=c1")(BINARY) is False


@pytest.mark.parametrize("text", ["", "size>1", "header.=1", "$.a[x]", "offset>many", "key~(", "=1"])
def test_an_invalid_condition_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--filter"):
        condition(text)


def test_a_template_has_the_fields_of_a_record() -> None:
    assert template(r"%t-%p@%o %T %k/%K %S %h 100%%\x41\t\\n\n")(RECORD) == (
        b"orders-2@41 1000 c1/2 %d trace=7,empty=NULL 100%%A\t\\n\n" % len(VALUE)
    )
    assert template("%k|%K|%s")(BINARY) == b"|-1|\xff"
    for wrong in ("%z", "%", "\\q"):
        with pytest.raises(ConfigError, match="--format: unknown"):
            template(wrong)


def test_client_options_have_the_names_of_kafkas_clients_or_of_ours() -> None:
    given = ["isolation.level=read_committed", "client.id=me", "fetch.min.bytes=1KiB", "session_timeout_ms=10s"]
    assert client_choices(given, ConsumerConfig) == ClientChoices(
        {"client_id": "me"},
        {"isolation_level": "read_committed", "consumer_min_bytes": 1024, "session_timeout_ms": 10_000},
    )
    assert client_choices(["acks=1", "linger.ms=5", "enable.idempotence=false"], ProducerConfig).other == {
        "acks": 1,
        "producer_batch_timeout_ms": 5,
        "idempotence": False,
    }
    for wrong in ("linger.ms=soon", "isolation.level=x", "linger.ms"):
        with pytest.raises(ConfigError, match="-X"):
            client_choices([wrong], ProducerConfig)
