"""The OpenAPI description is correct: generated requests get matching responses and never a server error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks

from ottla.http.app import DESCRIBED
from ottla.http.framework.openapi import document

if TYPE_CHECKING:
    from schemathesis.generation.case import Case

    from .serving import HttpBroker


@schemathesis.serializer("application/x-ndjson")
def as_lines(_context: Any, value: Any) -> bytes:
    return str(value).encode("utf-8", "replace")


schema = schemathesis.openapi.from_dict(httpx.Response(200, content=document(DESCRIBED)).json())

_STREAMS_FOR_EVER = "/v1/topics/{name}/tail"
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.response_schema_conformance,
    checks.content_type_conformance,
    checks.status_code_conformance,
]


@pytest.fixture(scope="module", autouse=True)
def known(served: HttpBroker) -> None:
    """Topics and groups for generated requests."""
    for name in ("a", "0"):
        served.client.post(f"/v1/topics/{name}/messages", json={"messages": [{"key": "k", "value": {"x": 1}}]})
        offsets = {"offsets": [{"topic": name, "partition": 0, "offset": 0}]}
        served.client.post(f"/v1/consumers/{name}/commit", json=offsets)


@schema.exclude(path=_STREAMS_FOR_EVER).parametrize()
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_generated_requests_are_answered_as_described(served: HttpBroker, case: Case) -> None:  # type: ignore[type-arg]
    case.call_and_validate(base_url=served.url, checks=CHECKS)


def test_every_endpoint_is_described(served: HttpBroker) -> None:
    described = served.client.get("/v1/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    known_tags = {tag["name"] for tag in described["tags"]}
    assert described["paths"]["/v1/topics/{name}/messages"]["post"]["tags"] == ["records"]
    for endpoint in DESCRIBED:
        operation = described["paths"][endpoint.path][endpoint.method.lower()]
        assert operation["summary"]
        assert operation["tags"][0] in known_tags
        assert "default" in operation["responses"]
    parameters = described["paths"]["/v1/topics/{name}/messages"]["get"]["parameters"]
    assert all(one["description"] for one in parameters if one["in"] == "query")
