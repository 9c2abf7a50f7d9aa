"""The table of APIs is complete, and costs nothing until it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest
from makers import EVERY_MESSAGE

from ottla.wire import apis
from ottla.wire.apis import APIS, request_type, response_type

DECIDED = """
    18:0-4 3:0-13 0:0-13 1:4-18 2:1-11 10:0-6 11:0-9 14:0-5 12:0-4 13:0-5 8:2-10 9:1-10 23:2-4
    22:0-5
    38:1-3 39:1-2 40:1-2 41:1-3
    19:2-7 20:1-6 32:1-4 44:0-1 33:0-2 37:0-3 15:0-6 16:0-5 42:0-2 21:0-2 60:0-2 75:0-0 47:0-0
    24:0-5 25:0-4 26:0-5 27:1-2 28:0-5
    17:0-1 36:0-2 50:0-0 51:0-0 29:1-3 30:1-3 31:1-3
    76:1-1 77:1-1 78:1-2 79:1-2 83:0-0 84:0-0 85:0-1 86:0-0 87:0-1 90:0-1 91:0-0 92:0-0
    68:0-1 69:0-1
    61:0-0 65:0-0 66:0-2 35:1-5 48:0-1 49:0-1 74:0-1 43:0-2 45:0-1 46:0-0
"""

SEEN_WITHOUT_MESSAGES = """
import sys
from ottla.wire import codec, frame, header
from ottla.wire.messages.api_versions import ApiVersionsRequest
codec.encode_request(ApiVersionsRequest(), 3, 1, "me")
print(*sorted(name for name in sys.modules if name.startswith("ottla.wire.messages.")))
print(*sorted({"asyncio", "socket", "threading", "uuid", "kio"} & set(sys.modules)))
"""


def test_the_table_is_complete() -> None:
    assert {f"{api.key}:{api.advertised_from}-{api.last}" for api in APIS.values()} == set(DECIDED.split())
    assert len(APIS) == len(DECIDED.split())


def test_only_produce_is_advertised_lower_than_it_is_spoken() -> None:
    assert [api for api in APIS.values() if api.advertised_from != api.first] == [apis.PRODUCE]
    assert apis.PRODUCE.first == 3


@pytest.mark.parametrize("api", APIS.values(), ids=str)
def test_an_api_leads_to_its_messages_and_back(api: apis.Api) -> None:
    assert request_type(api).API is api
    assert response_type(api).API is api
    assert request_type(api).RESPONSE is response_type(api)


def test_every_message_of_every_version_is_among_those_tested() -> None:
    assert len(EVERY_MESSAGE) == sum(2 * (api.last - api.first + 1) for api in APIS.values())


def test_messages_are_loaded_only_when_they_are_used() -> None:
    run = subprocess.run([sys.executable, "-c", SEEN_WITHOUT_MESSAGES], capture_output=True, text=True, check=True)
    messages, others = run.stdout.splitlines()
    assert messages == "ottla.wire.messages.api_versions"
    assert set(others.split()) <= {"uuid"}  # which msgspec brings
