from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ErrorCode
from ottla.wire.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from .raw_client import RawClient


@pytest.mark.parametrize("version", [0, 1, 2])
def test_old_versions_do_not_name_the_client_software(client: RawClient, version: int) -> None:
    assert client.ask(ApiVersionsRequest(), version).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [("apache-kafka-java", "4.2.0"), ("librdkafka", "2.16.0"), ("a", "1"), ("A.b-c", "1.0-rc.1")],
)
def test_new_versions_name_the_client_software(
    client: RawClient, version: int, name: str, software_version: str
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    answer = client.ask(request, version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.api_keys
    assert [(one.name, one.max_version_level) for one in answer.finalized_features] == [
        ("group.version", 1),
        ("share.version", 1),
        ("transaction.version", 2),
    ]


def test_features_with_minimum_zero_are_listed_only_in_versions_that_support_it(client: RawClient) -> None:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert client.ask(request, 3).supported_features == ()
    assert [one.name for one in client.ask(request, 4).supported_features] == [
        "group.version",
        "share.version",
        "transaction.version",
    ]


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("name", ["", "-", "a b", "a\n", "ä", ".x", "x.", "x" * 10 + "!"])
def test_an_invalid_client_software_name_is_an_invalid_request_and_the_connection_stays_open(
    client: RawClient, version: int, name: str
) -> None:
    for first, second in ((name, "1"), ("x", name)):
        answer = client.ask(ApiVersionsRequest(client_software_name=first, client_software_version=second), version)
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        assert answer.api_keys == ()
    assert client.ask(ApiVersionsRequest(), 0).error_code == ErrorCode.NONE
