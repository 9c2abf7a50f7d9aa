"""The table of served APIs is complete and correct, and is what ApiVersions returns."""

from __future__ import annotations

import inspect
import struct
from typing import TYPE_CHECKING

import pytest

from ottla.broker.authorization.rules import Rule
from ottla.broker.requests.api_table import SERVED as TABLE
from ottla.broker.requests.served_api import ServedApi
from ottla.core.errors import ErrorCode
from ottla.wire.apis import API_VERSIONS, APIS, METADATA, PRODUCE, Api
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.metadata import MetadataRequest

from .raw_client import HungUpError, RawClient

if TYPE_CHECKING:
    import ottla

SERVED = [pytest.param(APIS[key], id=APIS[key].name) for key in TABLE]
UNKNOWN_KEY = 200
NOT_SERVED = [api for key, api in APIS.items() if key not in TABLE]


def header(api_key: int, version: int, *, is_flexible: bool = False, client_id: bytes = b"\x00\x01x") -> bytes:
    return struct.pack(">hhi", api_key, version, 7) + client_id + (b"\x00" if is_flexible else b"")


def frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


@pytest.mark.parametrize("api", SERVED)
def test_each_route_leads_to_a_handler_of_that_apis_request(api: Api) -> None:
    handler = TABLE[api.key].handler()
    broker, request, context = inspect.signature(handler).parameters.values()
    assert (broker.annotation, context.annotation) == ("Broker", "Context")
    assert request.annotation.rpartition(".")[2] == f"{api.name}Request"


def test_api_versions_is_the_table(client: RawClient) -> None:
    for version in range(API_VERSIONS.first, API_VERSIONS.last + 1):
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        answer = client.ask(request, version)
        assert answer.error_code == ErrorCode.NONE
        served = {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}
        assert served == {key: (APIS[key].advertised_from, APIS[key].last) for key in TABLE}


def test_the_table_matches_the_specification() -> None:
    first_steps = {18, 3, 0, 1, 2, 10, 11, 14, 12, 13, 8, 9, 23}
    idempotence = {22}
    admin = {19, 20, 32, 44, 33, 37, 15, 16, 42, 21, 60, 75, 47}
    assert set(TABLE) >= first_steps | idempotence | admin


@pytest.mark.parametrize("api", NOT_SERVED, ids=lambda api: api.name)
def test_a_known_but_unserved_api_closes_the_connection(client: RawClient, api: Api) -> None:
    client.send_bytes(frame(header(api.key, api.last, is_flexible=api.is_flexible(api.last)) + bytes(20)))
    with pytest.raises(HungUpError):
        client.receive_frame()


@pytest.mark.parametrize("key", [-1, 4, 27, 200, 32767, -32768])
def test_an_unknown_api_closes_the_connection(client: RawClient, key: int) -> None:
    client.send_bytes(frame(header(key, 0) + bytes(20)))
    with pytest.raises(HungUpError):
        client.receive_frame()


@pytest.mark.parametrize("api", SERVED)
def test_an_unserved_version_closes_the_connection(broker: ottla.Broker, api: Api) -> None:
    if api == API_VERSIONS:
        return
    for version in {api.first - 1, api.last + 1, -1, 32767}:
        with RawClient(broker.bootstrap_servers) as client:
            client.send_bytes(frame(header(api.key, version, is_flexible=api.is_flexible(version)) + bytes(20)))
            with pytest.raises(HungUpError):
                client.receive_frame()


def test_produce_before_version_3_is_advertised_and_refused(client: RawClient) -> None:
    [entry] = [entry for entry in client.ask(ApiVersionsRequest(), 0).api_keys if entry.api_key == PRODUCE.key]
    assert entry.min_version == 0
    client.send_bytes(frame(header(PRODUCE.key, 2) + bytes(20)))
    with pytest.raises(HungUpError):
        client.receive_frame()


@pytest.mark.parametrize("version", [5, 127, 32767])
def test_a_future_version_of_api_versions_is_answered_in_version_0_with_the_served_versions(
    client: RawClient, version: int
) -> None:
    client.send_bytes(frame(header(API_VERSIONS.key, version, is_flexible=True) + b"whatever the future holds"))
    answer = client.receive_frame()
    correlation_id, error_code, count = struct.unpack_from(">ihi", answer)
    assert (correlation_id, error_code, count) == (7, ErrorCode.UNSUPPORTED_VERSION, len(TABLE))
    assert len(answer) == 10 + 6 * count
    keys = [entry[0] for entry in struct.iter_unpack(">hhh", answer[10:])]
    assert keys == sorted(TABLE)
    # The connection stays open: the client retries in a served version.
    assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE


def test_a_refused_request_does_not_affect_other_connections(broker: ottla.Broker) -> None:
    before = broker.broker.listener.counts["bad request"]
    with RawClient(broker.bootstrap_servers) as steady:
        for _ in range(5):
            with RawClient(broker.bootstrap_servers) as client:
                client.send_bytes(frame(header(UNKNOWN_KEY, 1) + bytes(20)))
                with pytest.raises(HungUpError):
                    client.receive_frame()
            assert steady.ask(MetadataRequest(topics=None)).brokers
    assert broker.broker.listener.counts["bad request"] == before + 5
    assert broker.broker.listener.counts["failed"] == 0


def test_delayed_responses_stay_in_order(client: RawClient) -> None:
    later = client.send(MetadataRequest(topics=()), METADATA.last)
    now = client.send(ApiVersionsRequest(), 0)
    assert client.receive(later).topics == ()
    assert client.receive(now).api_keys


def test_a_handler_of_another_apis_request_is_not_loaded() -> None:
    mistaken = ServedApi(METADATA, TABLE[PRODUCE.key].handler, Rule())
    with pytest.raises(TypeError, match=r"produce handles ProduceRequest, but is declared for Metadata \(3\)"):
        mistaken.load_handler()
