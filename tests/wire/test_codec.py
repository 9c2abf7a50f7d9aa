"""Whole frames: what brokers and clients send each other."""

import struct
import traceback
from pathlib import Path
from typing import Annotated, Any, cast

import pytest
from makers import EACH_MAKER, encoder

from ottla.core.errors import ProtocolError
from ottla.core.file_range import FileRange
from ottla.wire import apis, compiler
from ottla.wire.codec import decode_request, decode_response, encode_request, encode_response
from ottla.wire.declare import AnyBytes, Int32, Message, Request, Since, String
from ottla.wire.frame import FrameParser
from ottla.wire.header import RequestHeader, read_request_header
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.primitives import COPIED_RECORD_BYTES
from ottla.wire.schema import layout

LARGE = b"r" * (COPIED_RECORD_BYTES + 1)


def one_frame(buffers: list[AnyBytes]) -> memoryview:
    [frame] = FrameParser().feed(b"".join(buffers))
    return frame


def produce(records: bytes) -> ProduceRequest:
    part = PartitionProduceData(index=0, records=records)
    topic = TopicProduceData(name="orders", partition_data=(part,))
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=(topic,))


def fetched(records: AnyBytes) -> FetchResponse:
    part = PartitionData(partition_index=0, error_code=0, high_watermark=5, aborted_transactions=(), records=records)
    return FetchResponse(responses=(FetchableTopicResponse(topic="orders", partitions=(part, part)),))


def header(api: apis.Api, version: int) -> RequestHeader:
    return RequestHeader(api, version, 7, "me", 0)


@pytest.mark.parametrize("version", [3, 8, 9, 12])
def test_a_request_round_trips(version: int) -> None:
    frame = one_frame(encode_request(produce(b"batch"), version, 7, "me"))
    header = read_request_header(frame)
    assert (header.api, header.version, header.correlation_id) == (apis.PRODUCE, version, 7)
    assert decode_request(header, frame) == produce(b"batch")


@pytest.mark.parametrize("version", [4, 11, 12])
@pytest.mark.parametrize("records", [b"", b"small", LARGE])
def test_a_response_round_trips(version: int, records: bytes) -> None:
    frame = one_frame(encode_response(header(apis.FETCH, version), fetched(records)))
    request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=())
    assert decode_response(request, version, 7, frame) == fetched(records)


def test_a_response_to_another_request_is_refused() -> None:
    frame = one_frame(encode_response(header(apis.HEARTBEAT, 4), HeartbeatResponse(error_code=0)))
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    with pytest.raises(ProtocolError, match=r"the response to Heartbeat \(12\) has correlation id 7 instead of 8"):
        decode_response(request, 4, 8, frame)


def test_a_frame_on_the_wire_is_what_kafka_says_it_is() -> None:
    request = MetadataRequest(topics=(MetadataRequestTopic(name="t"),), allow_auto_topic_creation=False)
    sent = b"".join(encode_request(request, 9, 1, "x"))
    #  size | Metadata v9 | correlation | client id | tags | topics: "t", tags | auto, operations | tags
    assert sent == bytes.fromhex("00000014 0003 0009 00000001 0001 78 00 02 0274 00 00 00 00 00")
    answer = b"".join(encode_response(header(apis.HEARTBEAT, 4), HeartbeatResponse(error_code=27)))
    assert answer == bytes.fromhex("0000000c 00000007 00 00000000 001b 00")


def test_records_of_a_request_are_slices_of_its_frame() -> None:
    frame = one_frame(encode_request(produce(LARGE), 9, 7, "me"))
    request = decode_request(read_request_header(frame), frame)
    assert isinstance(request, ProduceRequest)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame.obj
    records[0:8] = struct.pack(">q", 42)
    assert struct.pack(">q", 42) in bytes(frame)


def test_large_records_of_a_response_are_handed_on_uncopied() -> None:
    records = memoryview(LARGE)
    buffers = encode_response(header(apis.FETCH, 12), fetched(records))
    assert [buffer is records for buffer in buffers] == [False, True, False, True, False]
    assert len(encode_response(header(apis.FETCH, 12), fetched(b"small"))) == 1
    assert int.from_bytes(bytes(buffers[0])[:4]) == sum(map(len, buffers)) - 4


@EACH_MAKER
def test_a_range_of_a_file_is_handed_on_like_large_records(maker: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"..." + LARGE)
    with path.open("rb") as file:
        found = FileRange(file.fileno(), 3, len(LARGE))
    respond = maker.compile_responder(FetchResponse, 12, is_flexible=True, has_header_tags=True)
    buffers = respond(fetched(cast("bytes", found)), 7)
    assert [buffer is found for buffer in buffers] == [False, True, False, True, False]
    assert b"".join(map(bytes, buffers)) == b"".join(respond(fetched(LARGE), 7))


def test_an_unserved_version_of_api_versions_can_be_answered_in_version_0() -> None:
    table = (ApiVersion(api_key=18, min_version=0, max_version=4),)
    response = ApiVersionsResponse(error_code=35, api_keys=table)
    asked = read_request_header(memoryview(struct.pack(">hhih", 18, 9, 7, -1) + b"\0future"))
    answer = b"".join(encode_response(asked, response, version=0))
    assert answer == bytes.fromhex("00000010 00000007 0023 00000001 0012 0000 0004")


@pytest.mark.parametrize("version", [2, 14, -1])
def test_an_unsupported_version_is_refused(version: int) -> None:
    with pytest.raises(ProtocolError, match=r"Produce \(0\) version .* is not supported \(3 to 13\)"):
        decode_request(header(apis.PRODUCE, version), memoryview(b""))
    with pytest.raises(ValueError, match=r"Produce \(0\) version .* is not supported \(3 to 13\)"):
        encode_request(produce(b""), version, 7, "me")


def test_a_field_that_a_version_lacks_is_left_out_in_silence() -> None:
    with_instance = HeartbeatRequest(group_id="g", generation_id=1, member_id="m", group_instance_id="i")
    frame = one_frame(encode_request(with_instance, 2, 7, None))
    request = decode_request(read_request_header(frame), frame)
    assert request == HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@EACH_MAKER
@pytest.mark.parametrize("version", [1, 6])
@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_ms": 2**31},
        {"timeout_ms": "1"},
        {"timeout_ms": None},
        {"topic_names": None, "topics": None},
        {"topic_names": (None,), "topics": (None,)},
        {"topic_names": (b"t",), "topics": (DeleteTopicState(name=b"t", topic_id=bytes(16)),)},  # type: ignore[arg-type]
        {"topic_names": ("t" * 32_768,), "topics": (DeleteTopicState(name="t" * 32_768, topic_id=bytes(16)),)},
        {"topic_names": ("\ud800",), "topics": (DeleteTopicState(name="\ud800", topic_id=bytes(16)),)},
        {"topic_names": (7,), "topics": (DeleteTopicState(name=None, topic_id=b"short"),)},
    ],
)
def test_a_value_that_does_not_fit_its_field_is_refused(maker: Any, version: int, wrong: dict[str, Any]) -> None:
    values: dict[str, Any] = {"timeout_ms": 1, "topic_names": (), "topics": ()} | wrong
    request = DeleteTopicsRequest(**values)
    with pytest.raises(ValueError, match=r"DeleteTopicsRequest v|surrogates not allowed"):
        encoder(maker, DeleteTopicsRequest, version)(request, bytearray())


def test_a_traceback_shows_generated_code() -> None:
    decode = compiler.compile_decoder(HeartbeatRequest, 0, is_flexible=False, room=1)
    try:
        decode(memoryview(b"\xff\xfe"), 0)
    except ProtocolError as refused:
        lines = "".join(traceback.format_exception(refused))
    assert "raise bad_length(WHAT, 'group_id', n, end - p)" in lines


def test_a_field_that_some_versions_lack_needs_a_default() -> None:
    class Forgetful(Message, frozen=True, kw_only=True):
        name: Annotated[String, Since(3)]

    with pytest.raises(TypeError, match=r"Forgetful\.name is missing from some versions"):
        layout(Forgetful, 0)


def test_a_declaration_must_not_be_kept_as_text() -> None:
    class Written(Message, frozen=True, kw_only=True):
        name: "String"

    with pytest.raises(TypeError, match="without `from __future__ import annotations`"):
        layout(Written, 0)


def test_a_declaration_of_a_type_that_kafka_does_not_have_is_refused() -> None:
    class Foreign(Message, frozen=True, kw_only=True):
        names: dict[str, int]

    with pytest.raises(TypeError, match="is not a type of the Kafka protocol"):
        layout(Foreign, 0)


def test_a_struct_within_a_struct_does_not_disturb_its_neighbours() -> None:
    class Point(Message, frozen=True, kw_only=True):
        x: Int32
        y: Int32

    class Line(Request, frozen=True, kw_only=True):
        API = apis.HEARTBEAT
        begin: Point
        width: Int32
        end: Point

    line = Line(begin=Point(x=1, y=2), width=3, end=Point(x=4, y=5))
    encode = compiler.compile_encoder(Line, 0, is_flexible=False)
    [data] = encode(line, bytearray())
    assert data == struct.pack(">5i", 1, 2, 3, 4, 5)
    assert compiler.compile_decoder(Line, 0, is_flexible=False, room=1)(memoryview(data), 0) == line
