"""The description of the registry is true: requests made from it get answers that fit it, and never a server error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi import checks
from tests.rest.serving import HttpBroker

from ottla.http.registry.openapi import describe
from ottla.http.registry.served import DESCRIBED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis.generation.case import Case

schema = schemathesis.openapi.from_dict(describe(DESCRIBED))
CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.response_schema_conformance,
    checks.content_type_conformance,
    checks.status_code_conformance,
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    with HttpBroker(tmp_path_factory.mktemp("broker")) as served:
        for subject in ("0", "a"):
            path = f"/schema-registry/subjects/{subject}/versions"
            assert served.client.post(path, json={"schema": '"int"'}).status_code == 200
        yield served


@schema.exclude(path="/").parametrize()
@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_requests_made_from_the_description_are_answered_as_it_says(served: HttpBroker, case: Case) -> None:  # type: ignore[type-arg]
    case.call_and_validate(base_url=f"{served.url}/schema-registry", checks=CHECKS)


def test_the_description_is_served(served: HttpBroker) -> None:
    assert served.client.get("/schema-registry/openapi.json").json() == describe(DESCRIBED)
