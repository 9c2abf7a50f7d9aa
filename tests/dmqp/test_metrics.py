"""DMQP metrics in `/metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.dmqp.frame import HEADER, MAX_PAYLOAD_BYTES, Method

from .serving import DmqpBroker, RawShard

if TYPE_CHECKING:
    from pathlib import Path


def test_requests_are_counted_by_method_and_status(tmp_path: Path) -> None:
    with DmqpBroker(tmp_path) as served:
        [port] = served.exposed("jobs")
        with RawShard(port) as shard:
            for _ in range(3):
                shard.ask(Method.PUSH, payload=b"v")
            shard.ask(Method.PUSH, sequence_id=77, payload=b"v")
            for method in (Method.PEEK_SEQUENCE_ID, Method.POP, Method.POP, Method.POP, Method.POP, Method.RESPONSE, 9):
                shard.ask(method)
            told = served.client.get("/metrics").text.splitlines()
            shard.send(HEADER.pack(0, MAX_PAYLOAD_BYTES + 1, Method.PUSH, 0))
            shard.receive()
        later = served.client.get("/metrics").text

    assert [line for line in told if line.startswith("ottla_dmqp_replies_total")] == [
        'ottla_dmqp_replies_total{method="PEEK_SEQUENCE_ID",status="OK"} 1',
        'ottla_dmqp_replies_total{method="POP",status="ENODATA"} 1',
        'ottla_dmqp_replies_total{method="POP",status="OK"} 3',
        'ottla_dmqp_replies_total{method="PUSH",status="EINVAL"} 1',
        'ottla_dmqp_replies_total{method="PUSH",status="OK"} 3',
        'ottla_dmqp_replies_total{method="RESPONSE",status="EPROTO"} 1',
        'ottla_dmqp_replies_total{method="unknown",status="ENOSYS"} 1',
    ]
    assert 'ottla_dmqp_request_seconds_count{method="POP"} 4' in told
    assert "ottla_dmqp_connections 1" in told
    assert 'ottla_dmqp_replies_total{method="PUSH",status="EMSGSIZE"} 1' in later
