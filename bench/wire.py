"""What reading and writing messages costs, beside kio in the same run."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import time
import timeit
from dataclasses import make_dataclass
from typing import TYPE_CHECKING, Any

from kio.index import load_payload_module
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from bench.report import Row, against
from ottla.wire import compiler
from ottla.wire.codec import decode_request, encode_request, encode_response
from ottla.wire.frame import FrameParser
from ottla.wire.header import read_request_header
from ottla.wire.messages import api_versions, fetch, join_group, metadata, produce
from ottla.wire.schema import layout

MAKERS: list[Any] = [compiler]
try:
    from ottla.wire import plans
except ImportError:
    print("not measured: the compiled reader and writer, which are not installed")
else:
    MAKERS.append(plans)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.wire.declare import Request, Response

RECORDS = bytes(1000)
TOPIC_ID = bytes(range(16))
ANSWER_API_VERSIONS = """
import time; began = time.perf_counter()
import msgspec; loaded_msgspec = time.perf_counter()
from ottla.wire import codec, frame, header
loaded = time.perf_counter()
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
[request] = frame.FrameParser().feed(b"".join(codec.encode_request(ApiVersionsRequest(), 3, 1, "me")))
ready = time.perf_counter()
asked = header.read_request_header(request)
codec.decode_request(asked, request)
codec.encode_response(asked, ApiVersionsResponse(error_code=0, api_keys=()))
answered = time.perf_counter()
print(loaded_msgspec - began, loaded - loaded_msgspec, answered - ready)
"""


def produce_request() -> produce.ProduceRequest:
    part = produce.PartitionProduceData(index=0, records=RECORDS)
    topic = produce.TopicProduceData(name="orders", topic_id=TOPIC_ID, partition_data=(part,))
    return produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(topic,))


def produce_response() -> produce.ProduceResponse:
    part = produce.PartitionProduceResponse(index=0, error_code=0, base_offset=77, log_start_offset=0)
    topic = produce.TopicProduceResponse(name="orders", topic_id=TOPIC_ID, partition_responses=(part,))
    return produce.ProduceResponse(responses=(topic,))


def fetch_request() -> fetch.FetchRequest:
    parts = tuple(
        fetch.FetchPartition(partition=index, fetch_offset=1000, partition_max_bytes=1 << 20) for index in range(10)
    )
    topic = fetch.FetchTopic(topic="orders", topic_id=TOPIC_ID, partitions=parts)
    return fetch.FetchRequest(max_wait_ms=500, min_bytes=1, topics=(topic,))


def fetch_response() -> fetch.FetchResponse:
    part = fetch.PartitionData(
        partition_index=0,
        error_code=0,
        high_watermark=1000,
        last_stable_offset=1000,
        log_start_offset=0,
        aborted_transactions=None,
        records=RECORDS,
    )
    topic = fetch.FetchableTopicResponse(topic="orders", topic_id=TOPIC_ID, partitions=(part,))
    return fetch.FetchResponse(responses=(topic,))


def metadata_response() -> metadata.MetadataResponse:
    broker = metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092)
    part = metadata.MetadataResponsePartition(
        error_code=0, partition_index=0, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
    )
    topics = tuple(
        metadata.MetadataResponseTopic(error_code=0, name=f"topic-{index}", topic_id=TOPIC_ID, partitions=(part,))
        for index in range(10)
    )
    return metadata.MetadataResponse(brokers=(broker,), cluster_id="ottla", controller_id=1, topics=topics)


def join_group_request() -> join_group.JoinGroupRequest:
    protocol = join_group.JoinGroupRequestProtocol(name="range", metadata=bytes(40))
    return join_group.JoinGroupRequest(
        group_id="group",
        session_timeout_ms=45_000,
        rebalance_timeout_ms=300_000,
        member_id="consumer-1-0f2c",
        protocol_type="consumer",
        protocols=(protocol,),
    )


def api_versions_response() -> api_versions.ApiVersionsResponse:
    keys = tuple(api_versions.ApiVersion(api_key=key, min_version=0, max_version=9) for key in range(57))
    return api_versions.ApiVersionsResponse(error_code=0, api_keys=keys)


CASES: list[tuple[Request | Response, int, str]] = [
    (produce_request(), 9, "decode"),
    (produce_response(), 9, "encode"),
    (fetch_request(), 12, "decode"),
    (fetch_request(), 16, "decode"),
    (fetch_response(), 16, "encode"),
    (metadata_response(), 12, "encode"),
    (join_group_request(), 9, "decode"),
    (api_versions_response(), 3, "encode"),
]


def microseconds(call: Callable[[], object]) -> float:
    timer = timeit.Timer(call)
    count, _ = timer.autorange()
    return min(timer.repeat(repeat=5, number=max(1, count // 5))) / max(1, count // 5) * 1e6


def made_by(
    maker: Any,  # noqa: ANN401
    message: Request | Response,
    version: int,
    direction: str,
) -> Callable[[], object]:
    is_flexible = message.API.is_flexible(version)
    encode = maker.compile_encoder(type(message), version, is_flexible=is_flexible)
    if direction == "encode":
        return lambda: encode(message, bytearray())
    decode = maker.compile_decoder(type(message), version, is_flexible=is_flexible, room=1_000_000)
    data = memoryview(b"".join(encode(message, bytearray())))
    return lambda: decode(data, 0)


def made_by_kio(message: Request | Response, version: int, direction: str) -> Callable[[], object]:
    is_request = type(message).__name__.endswith("Request")
    kind: Any = EntityType.request if is_request else EntityType.response
    theirs = getattr(load_payload_module(message.API.key, version, kind), type(message).__name__)
    encode = compiler.compile_encoder(type(message), version, is_flexible=message.API.is_flexible(version))
    data = b"".join(encode(message, bytearray()))
    read, write = entity_reader(theirs), entity_writer(theirs)
    if direction == "decode":
        return lambda: read(data, 0)
    entity, _ = read(data, 0)
    return lambda: write(io.BytesIO(), entity)


def message_rows() -> Iterator[Row]:
    for message, version, direction in CASES:
        name = f"{direction} {type(message).__name__} v{version}"
        theirs = microseconds(made_by_kio(message, version, direction))
        for maker in MAKERS:
            how = "generated Python" if maker is compiler else "compiled"
            ours = microseconds(made_by(maker, message, version, direction))
            yield against(f"{name}, {how} / kio", ours, theirs)


def first_use_rows() -> Iterator[Row]:
    for message, version, direction in CASES:
        for maker in MAKERS:
            layout.cache_clear()
            began = time.perf_counter()
            made_by(maker, message, version, direction)
            taken = time.perf_counter() - began
            how = "generated Python" if maker is compiler else "compiled"
            yield Row(what=f"first {type(message).__name__} v{version}, {how}", ours=f"{taken * 1e3:.2f} ms")


def path_rows() -> Iterator[Row]:
    """One produce request of 1000 bytes through the package, as a broker sees it."""
    request, response = produce_request(), produce_response()
    stream = b"".join(encode_request(request, 9, 7, "rdkafka"))
    parser = FrameParser()
    memoryview(parser.get_buffer())[: len(stream)] = stream
    [frame] = parser.buffer_updated(len(stream))
    header = read_request_header(frame)
    steps: dict[str, Callable[[], object]] = {
        "cut the frame": lambda: (parser.get_buffer(), parser.buffer_updated(len(stream))),
        "read_request_header": lambda: read_request_header(frame),
        "decode_request": lambda: decode_request(header, frame),
        "build the response": produce_response,
        "encode_response": lambda: encode_response(header, response),
    }
    for name, call in steps.items():
        yield Row(what=f"one ProduceRequest v9: {name}", ours=f"{microseconds(call):.2f} µs")


def struct_row() -> Row:
    fields = [("index", int), ("records", bytes)]
    like_it = make_dataclass("PartitionProduceData", fields, frozen=True, slots=True, kw_only=True)
    ours = microseconds(lambda: produce.PartitionProduceData(index=0, records=RECORDS))
    return against(
        "build a struct of two fields / frozen dataclass",
        ours,
        microseconds(lambda: like_it(index=0, records=RECORDS)),
    )


def start_rows() -> Iterator[Row]:
    command = [sys.executable, "-c", ANSWER_API_VERSIONS]
    with tempfile.TemporaryDirectory() as bytecode:
        # As installed: with bytecode written by the first run, whatever this shell says about that.
        settings = os.environ | {"PYTHONPYCACHEPREFIX": bytecode, "PYTHONDONTWRITEBYTECODE": ""}
        runs = [[float(part) for part in subprocess.check_output(command, env=settings).split()] for _ in range(9)]
    steps = ("import msgspec", "then import ottla.wire", "then the first ApiVersions answer")
    for step, times in zip(steps, zip(*runs, strict=True), strict=True):
        yield Row(what=f"start: {step}", ours=f"{min(times) * 1e3:.2f} ms")


def rows() -> Iterator[Row]:
    yield from message_rows()
    yield from path_rows()
    yield struct_row()
    yield from first_use_rows()
    yield from start_rows()
