"""A request for every path, parameter and error code of the API; the table in the docs lists these and no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest
from tests.rest.serving import HttpBroker

from ottla.http.registry.served import SERVED

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "schema-registry.md").read_text()
A1 = '{"type":"record","name":"A","fields":[{"name":"a","type":"int"}]}'
A2 = '{"type":"record","name":"A","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'
BAD = '{"type":"record","name":"A","fields":[{"name":"a","type":"int"},{"name":"c","type":"int"}]}'
SPACED = '{ "type": "record", "fields": [{"type": "int", "name": "a"}], "name": "A" }'
USES = '{"type":"record","name":"U","fields":[{"name":"a","type":"A"}]}'
REFERENCES = [{"name": "A", "subject": "base", "version": 1}]
HUGE = '{"type":"enum","name":"E","symbols":["%s"]}' % ("x" * 1_100_000)
GUID = "00000000-0000-0000-0000-000000000000"
RULES = {"domainRules": [{"name": "r", "kind": "CONDITION", "type": "CEL", "mode": "WRITE", "expr": "true"}]}
BAD_RULES = {"domainRules": [{"name": "no good name!", "type": "CEL"}]}
Body = dict[str, Any]


class Case(NamedTuple):
    method: str
    path: str
    expected: int
    """A status, or an error code."""
    query: str = ""
    body: Body | None = None
    answer: Any = None
    """None: any."""
    before: tuple[tuple[str, str, Body | None], ...] = ()
    after: tuple[tuple[str, str, Body | None], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}?{self.query} {self.expected}"


def get(path: str, expected: int, query: str = "", answer: Any = None) -> Case:
    return Case("GET", path, expected, query, None, answer)


def schema(text: str, **more: Any) -> Body:
    return {"schema": text, **more}


READONLY = (("PUT", "/mode", {"mode": "READONLY_OVERRIDE"}),)
READWRITE = (("PUT", "/mode", {"mode": "READWRITE"}),)

WITHOUT_USES = (("DELETE", "/subjects/uses", None), ("DELETE", "/subjects/uses?permanent=true", None))
WITH_USES = (("POST", "/subjects/uses/versions", schema(USES, references=REFERENCES)),)
EMPTY = (
    ("DELETE", "/associations/resources/t1", None),
    ("DELETE", "/associations/resources/id-other", None),
    *(
        ("DELETE", f"/subjects/{each}", None)
        for each in (
            "uses",
            "base",
            "half",
            "meta",
            "locked",
            "go3",
            "new1",
            ":.c:s",
            "shared",
            ":.lkc:shared-mine-value",
        )
    ),
)

SETUP: tuple[tuple[str, str, Body | None], ...] = (
    ("POST", "/subjects/base/versions", schema(A1)),
    ("POST", "/subjects/base/versions", schema(A2)),
    ("POST", "/subjects/uses/versions", schema(USES, references=REFERENCES)),
    ("POST", "/subjects/soft/versions", schema(A1)),
    ("DELETE", "/subjects/soft", None),
    ("POST", "/subjects/half/versions", schema(A1)),
    ("POST", "/subjects/half/versions", schema(A2)),
    ("DELETE", "/subjects/half/versions/1", None),
    ("POST", "/subjects/meta/versions", schema('"int"', metadata={"properties": {"k": "v"}}, ruleSet=RULES)),
    ("POST", "/subjects/locked/versions", schema('"long"')),
    ("PUT", "/mode/locked", {"mode": "READONLY"}),
    ("POST", "/subjects/:.c:s/versions", schema('"int"')),
    ("PUT", "/config/set", {"compatibility": "FULL"}),
    ("POST", "/subjects/go1/versions", schema('"float"')),
    ("POST", "/subjects/go2/versions", schema('"double"')),
    ("DELETE", "/subjects/go2", None),
    ("POST", "/subjects/go3/versions", schema('"bytes"')),
    ("POST", "/subjects/go4/versions", schema('"boolean"')),
    ("DELETE", "/subjects/go4/versions/1", None),
    ("POST", "/subjects/:.other:base/versions", schema(A1)),
    ("POST", "/subjects/:.other:uses/versions", schema(USES, references=REFERENCES)),
    ("DELETE", "/subjects/:.other:uses", None),
    ("DELETE", "/subjects/:.other:base", None),
    ("POST", "/subjects/shared/versions", schema('"string"')),
    ("PUT", "/config/nickname", {"alias": "shared"}),
    (
        "POST",
        "/associations",
        {
            "resourceName": "orders",
            "resourceNamespace": "lkc",
            "resourceId": "t1",
            "associations": [{"subject": "shared"}],
        },
    ),
    (
        "POST",
        "/associations",
        {
            "resourceName": "mine",
            "resourceNamespace": "lkc",
            "resourceId": "t3",
            "associations": [{"schema": {"schema": '"int"'}}],
        },
    ),
)
RESERVED = {"confluent:reserved": "a"}
ORDERS = {"resourceName": "orders", "resourceNamespace": "lkc", "resourceId": "t1"}
MINE = {"resourceName": "mine", "resourceNamespace": "lkc", "resourceId": "t3"}


def weak(subject: str, resource: Body = ORDERS, **more: Any) -> Body:
    return {**resource, "associations": [{"subject": subject, **more}]}


def strong(text: str = '"int"', resource: Body = MINE, **more: Any) -> Body:
    return {**resource, "associations": [{"schema": schema(text), **more}]}


def resource(name: str) -> Body:
    return {"resourceName": name, "resourceNamespace": "lkc", "resourceId": f"id-{name}"}


READS = (
    get("/subjects", 200, "subjectPrefix=ba", ["base"]),
    get("/subjects", 200, "subjectPrefix=soft&deleted=true", ["soft"]),
    get("/subjects", 200, "subjectPrefix=s&deletedOnly=true", ["soft"]),
    get("/subjects", 200, "subjectPrefix=ba&offset=1&limit=1", []),
    get("/subjects/base/versions", 200, "", [1, 2]),
    get("/subjects/half/versions", 200, "deleted=true", [1, 2]),
    get("/subjects/half/versions", 200, "deletedOnly=true", [1]),
    get("/subjects/base/versions", 200, "offset=1&limit=5", [2]),
    get("/subjects/none/versions", 40401),
    get("/subjects/base/versions/1", 200),
    get("/subjects/half/versions/1", 200, "deleted=true"),
    get("/subjects/uses/versions/1", 200, "format=resolved"),
    get("/subjects/uses/versions/1", 200, "referenceFormat=qualified"),
    get("/subjects/none/versions/1", 40401),
    get("/subjects/base/versions/9", 40402),
    get("/subjects/base/versions/x", 42202),
    get("/subjects/half/versions/1/schema", 200, "deleted=true"),
    get("/subjects/uses/versions/1/schema", 200, "format=resolved"),
    get("/subjects/none/versions/1/schema", 40401),
    get("/subjects/base/versions/9/schema", 40402),
    get("/subjects/base/versions/0/schema", 42202),
    get("/subjects/base/versions/1/referencedby", 200, "", [3]),
    get("/subjects/:.other:base/versions/1/referencedby", 200, "deleted=true", [2]),
    get("/subjects/base/versions/1/referencedby", 200, "offset=1&limit=1", []),
    get("/subjects/none/versions/1/referencedby", 40401),
    get("/subjects/base/versions/9/referencedby", 40402),
    get("/subjects/base/versions/x/referencedby", 42202),
    get("/subjects/meta/metadata", 200, "key=k&value=v"),
    get("/subjects/meta/metadata", 200, "key=k&value=v&deleted=true&format=resolved"),
    get("/subjects/meta/metadata", 40403, "key=k&value=x"),
    get("/schemas", 200, "subjectPrefix=soft", []),
    get("/schemas", 200, "subjectPrefix=base&latestOnly=true&deleted=true&ruleType=none", []),
    get("/schemas", 200, "offset=1&limit=0", []),
    get("/subjects/half/versions", 200, "deletedAsNegative=true", [-1, 2]),
    get("/schemas", 200, "subjectPrefix=nick&aliases=true&resourceType=none&lifecycle=WEAK", []),
    get("/schemas", 200, "subjectPrefix=shared&associationType=key", []),
    get("/associations/subjects/shared", 200, "resourceType=none", []),
    get("/associations/subjects/shared", 200, "associationType=value&lifecycle=STRONG", []),
    get("/associations/subjects/shared", 200, "offset=1&limit=1", []),
    get("/associations/resources/lkc/orders", 200, "resourceType=topic&associationType=key", []),
    get("/associations/resources/lkc/orders", 200, "lifecycle=WEAK&offset=1&limit=1", []),
    get("/associations/resources/t1", 200, "resourceType=topic&associationType=key", []),
    get("/associations/resources/t1", 200, "lifecycle=WEAK&offset=1&limit=1", []),
    Case("POST", "/associations:batchGet", 207, "includeSchemas=true", {"requests": [{"resourceId": "t1"}]}),
    Case("POST", "/associations:batchGet", 42212, "", {"requests": []}),
    get("/schemas/types", 200, "", ["JSON", "PROTOBUF", "AVRO"]),
    get("/schemas/types/", 200, "", ["JSON", "PROTOBUF", "AVRO"]),
    get("/schemas/ids/1", 200, "fetchMaxId=true&subject=base"),
    get("/schemas/ids/3", 200, "format=resolved&referenceFormat=qualified"),
    get("/schemas/ids/999", 40403),
    get("/schemas/ids/3/schema", 200, "format=resolved&subject=uses"),
    get("/schemas/ids/999/schema", 40403),
    get("/schemas/ids/1/subjects", 200, "subject=base", ["base"]),
    get("/schemas/ids/1/subjects", 200, "deleted=true&offset=1&limit=2", ["half", "soft"]),
    get("/schemas/ids/999/subjects", 40403),
    get("/schemas/ids/1/versions", 200, "subject=base", [{"subject": "base", "version": 1}]),
    get("/schemas/ids/1/versions", 200, "deleted=true&offset=2&limit=1", [{"subject": "soft", "version": 1}]),
    get("/schemas/ids/999/versions", 40403),
    get("/schemas/guids/{guid}", 200, "format=resolved"),
    get(f"/schemas/guids/{GUID}", 40403),
    get("/schemas/guids/{guid}/ids", 200, "", [{"context": ".", "id": 1}, {"context": ".other", "id": 1}]),
    get(f"/schemas/guids/{GUID}/ids", 40403),
    get("/config", 200, "defaultToGlobal=true", {"compatibilityLevel": "BACKWARD"}),
    get("/config/set", 200, "", {"compatibilityLevel": "FULL"}),
    get("/config/base", 200, "defaultToGlobal=true", {"compatibilityLevel": "BACKWARD"}),
    get("/config/base", 40408),
    get("/mode", 200, "defaultToGlobal=true", {"mode": "READWRITE"}),
    get("/mode/locked", 200, "", {"mode": "READONLY"}),
    get("/mode/base", 200, "defaultToGlobal=true", {"mode": "READWRITE"}),
    get("/mode/base", 40409),
    get("/contexts", 200, "contextPrefix=.c", [".c"]),
    get("/contexts", 200, "offset=1&limit=1", [".c"]),
    get("/", 200, "", {}),
    Case("POST", "/", 200, answer={}),
    get("/v1/metadata/id", 200),
    get("/v1/metadata/version", 200),
    get("/v1/metadata/deployment", 200, "", {"attributes": []}),
    get("/openapi.json", 200),
    Case("POST", "/subjects/base", 200, "normalize=true&format=resolved", schema(SPACED)),
    Case("POST", "/subjects/soft", 200, "deleted=true", schema(A1)),
    Case("POST", "/subjects/none", 40401, "", schema(A1)),
    Case("POST", "/subjects/base", 40403, "", schema('"int"')),
    Case("POST", "/subjects/base", 42201, "", schema("{")),
    Case("POST", "/compatibility/subjects/base/versions", 200, "normalize=true", schema(A1), {"is_compatible": True}),
    Case("POST", "/compatibility/subjects/base/versions", 200, "verbose=true", schema(BAD)),
    Case("POST", "/compatibility/subjects/base/versions", 42201, "", schema("{")),
    Case("POST", "/compatibility/subjects/base/versions/1", 200, "normalize=true", schema(A2), {"is_compatible": True}),
    Case("POST", "/compatibility/subjects/base/versions/latest", 200, "verbose=true", schema(BAD)),
    Case("POST", "/compatibility/subjects/none/versions/1", 40401, "", schema(A1)),
    Case("POST", "/compatibility/subjects/base/versions/9", 40402, "", schema(A1)),
    Case("POST", "/compatibility/subjects/base/versions/1", 42201, "", schema("{")),
    Case("POST", "/compatibility/subjects/base/versions/x", 42202, "", schema(A1)),
)
CHANGES = (
    Case("POST", "/subjects/new1/versions", 200, "normalize=true&format=resolved", schema(SPACED)),
    Case("POST", "/subjects/base/versions", 40901, "", schema(BAD)),
    Case("POST", "/subjects/go3/versions", 200, "force=true", schema('"long"')),
    Case("POST", "/subjects/base/versions", 42201, "", schema("{")),
    Case("POST", "/subjects/locked/versions", 42205, "", schema('"string"')),
    Case("POST", "/subjects/__EMPTY/versions", 42208, "", schema(A1)),
    Case(
        "POST",
        "/subjects/huge/versions",
        42209,
        "",
        schema(HUGE),
    ),
    Case("POST", "/subjects/new2/versions", 42210, "", schema(A1, ruleSet=BAD_RULES)),
    Case("DELETE", "/subjects/go1", 200, answer=[1]),
    Case("DELETE", "/subjects/go1", 40404),
    Case("DELETE", "/subjects/go1", 200, "permanent=true", answer=[1]),
    Case("DELETE", "/subjects/none", 40401),
    Case("DELETE", "/subjects/base", 40405, "permanent=true", before=WITHOUT_USES, after=WITH_USES),
    Case("DELETE", "/subjects/locked", 42205),
    Case("DELETE", "/subjects/base", 42206),
    Case("DELETE", "/subjects/go3/versions/1", 200, answer=1),
    Case("DELETE", "/subjects/go3/versions/1", 40406),
    Case("DELETE", "/subjects/go3/versions/1", 200, "permanent=true", answer=1),
    Case("DELETE", "/subjects/none/versions/1", 40401),
    Case("DELETE", "/subjects/base/versions/9", 40402),
    Case("DELETE", "/subjects/base/versions/2", 40407, "permanent=true"),
    Case("DELETE", "/subjects/base/versions/x", 42202),
    Case("DELETE", "/subjects/locked/versions/1", 42205),
    Case("DELETE", "/subjects/base/versions/1", 42206),
    Case("PUT", "/config", 200, "", {"compatibility": "BACKWARD"}),
    Case("PUT", "/config", 42203, "", {"compatibility": "x"}),
    Case("PUT", "/config", 42205, "", {"compatibility": "FULL"}, before=READONLY, after=READWRITE),
    Case("PUT", "/config", 42210, "", {"defaultRuleSet": BAD_RULES}),
    Case("DELETE", "/config", 200),
    Case("DELETE", "/config", 42205, before=READONLY, after=READWRITE),
    Case("PUT", "/config/set", 200, "", {"compatibility": "NONE"}, {"compatibility": "NONE"}),
    Case("PUT", "/config/set", 42203, "", {"compatibility": "x"}),
    Case("PUT", "/config/locked", 42205, "", {"compatibility": "NONE"}),
    Case("PUT", "/config/set", 42210, "", {"overrideRuleSet": BAD_RULES}),
    Case("DELETE", "/config/set", 42205, before=READONLY, after=READWRITE),
    Case("DELETE", "/config/set", 200),
    Case("DELETE", "/config/set", 40401),
    Case("PUT", "/mode", 42204, "", {"mode": "x"}),
    Case("PUT", "/mode", 42205, "", {"mode": "IMPORT"}),
    Case("PUT", "/mode", 200, "force=true", {"mode": "IMPORT"}, {"mode": "IMPORT"}, after=READWRITE),
    Case("DELETE", "/mode", 200, "recursive=true", before=READWRITE),
    Case("DELETE", "/mode", 40401),
    Case("PUT", "/mode/base", 42204, "", {"mode": "x"}),
    Case("PUT", "/mode/base", 42205, "", {"mode": "IMPORT"}),
    Case("PUT", "/mode/base", 200, "force=true", {"mode": "IMPORT"}, {"mode": "IMPORT"}),
    Case("DELETE", "/mode/base", 200, "recursive=true"),
    Case("DELETE", "/mode/base", 40401),
    Case("DELETE", "/contexts/:.:", 42205),
    Case("DELETE", "/contexts/.c", 42211),
    Case("DELETE", "/contexts/.nothing", 204),
    Case(
        "POST",
        "/associations",
        200,
        "context=.c&dryRun=true",
        weak("s", resource("context")),
        resource("context") | {"resourceType": "topic"},
    ),
    Case("POST", "/associations", 40903, "", weak("base")),
    Case(
        "POST",
        "/associations",
        40904,
        "",
        strong('"int"', resource("shared-mine")),
        before=(
            ("POST", "/subjects/:.lkc:shared-mine-value/versions", schema('"int"')),
            ("POST", "/associations", weak(":.lkc:shared-mine-value", resource("other"))),
        ),
    ),
    Case("POST", "/associations", 40905, "", weak(":.lkc:mine-value", resource("second"))),
    Case("POST", "/associations", 40907, "", weak("nothing", resource("second"))),
    Case(
        "POST",
        "/associations",
        40901,
        body={**resource("again"), "associations": [{"schema": schema(A1, metadata={"properties": RESERVED})}]},
        before=(("PUT", "/config/:.lkc:again-value", {"validateFields": True}),),
    ),
    Case("POST", "/associations", 42201, "", strong("{", resource("second"))),
    Case("POST", "/associations", 42205, "", weak("base", resource("second")), before=READONLY, after=READWRITE),
    Case(
        "POST",
        "/associations",
        42206,
        body=strong(A1, resource("target")),
        before=(
            ("POST", "/subjects/:.lkc:target-value/versions", schema(A1)),
            (
                "POST",
                "/subjects/:.lkc:refers/versions",
                schema(USES, references=[{"name": "A", "subject": "target-value", "version": 1}]),
            ),
        ),
        after=(("DELETE", "/subjects/:.lkc:refers", None), ("DELETE", "/subjects/:.lkc:target-value", None)),
    ),
    Case("POST", "/associations", 42212, "", {}),
    Case("PUT", "/associations/resources/id-put", 200, "context=.c&dryRun=true", weak("s", resource("put"))),
    Case("PUT", "/associations/resources/id-put", 40905, "", weak(":.lkc:mine-value", resource("put"))),
    Case("PUT", "/associations/resources/id-put", 40907, "", weak("nothing", resource("put"))),
    Case(
        "PUT",
        "/associations/resources/id-put",
        42205,
        "",
        weak("base", resource("put")),
        before=READONLY,
        after=READWRITE,
    ),
    Case("PUT", "/associations/resources/id-put", 42212, "", weak("base", resource("other"))),
    Case("DELETE", "/subjects/shared", 40904),
    Case("DELETE", "/subjects/shared/versions/1", 40907),
    Case("DELETE", "/associations/resources/t3", 40908),
    Case("DELETE", "/associations/resources/t1", 42205, before=READONLY, after=READWRITE),
    Case("DELETE", "/associations/resources/t1", 204, "resourceType=topic&associationType=value&dryRun=true"),
    Case("DELETE", "/associations/resources/t3", 204, "cascadeLifecycle=true"),
    Case("DELETE", "/associations/resources/t3", 40410),
    Case("POST", "/associations:batchMutate", 207, "context=.c&dryRun=true", {"requests": [ORDERS]}),
    Case("POST", "/associations:batchMutate", 42212, "", {}),
    # Last: an import needs an empty registry.
    Case("PUT", "/mode/:.other:base", 42206, "", {"mode": "IMPORT"}),
    Case("PUT", "/mode", 42206, "", {"mode": "IMPORT"}, before=EMPTY),
)
CASES = (*READS, *CHANGES)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with (
        HttpBroker(tmp_path_factory.mktemp("broker")) as served,
        httpx.Client(base_url=f"{served.url}/schema-registry", timeout=20) as client,
    ):
        for method, path, body in SETUP:
            answer = client.request(method, path, json=body)
            assert answer.is_success, (path, answer.text)
        yield client


@pytest.mark.parametrize("group", [READS, CHANGES], ids=["reads", "changes"])
def test_every_case_is_answered_as_expected(http: httpx.Client, group: tuple[Case, ...]) -> None:
    guid = http.get("/subjects/base/versions/1").json()["guid"]
    for case in group:
        for method, path, body in case.before:
            http.request(method, path, json=body)
        url = case.path.replace("{guid}", guid) + (f"?{case.query}" if case.query else "")
        answer = http.request(case.method, url, json=case.body)
        for method, path, body in case.after:
            assert http.request(method, path, json=body).is_success, case.name
        if case.expected < 300:
            assert answer.status_code == case.expected, (case.name, answer.text)
            assert case.answer is None or answer.json() == case.answer, (case.name, answer.text)
        else:
            assert answer.json().get("error_code") == case.expected, (case.name, answer.text)
            assert answer.status_code == (case.expected if case.expected < 1000 else case.expected // 100)


def template(method: str, path: str) -> str:
    """The first path of the table that matches, fixed ones before those with parameters."""
    paths = sorted((each.path for each in SERVED if each.method == method), key=lambda each: each.count("{"))
    return next(each for each in paths if re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(each)), path))


def covered() -> dict[tuple[str, str], tuple[set[str], set[int]]]:
    found: dict[tuple[str, str], tuple[set[str], set[int]]] = {}
    for case in CASES:
        parameters, codes = found.setdefault((case.method, template(case.method, case.path)), (set(), set()))
        parameters |= set(httpx.QueryParams(case.query).keys())
        if case.expected >= 300:
            codes.add(case.expected)
    return found


def test_there_is_a_case_for_every_path_parameter_and_error_code() -> None:
    declared = {(each.method, each.path): (set(each.parameters), set(each.codes)) for each in SERVED}
    assert covered() == declared


def test_the_table_in_the_docs_has_every_path_parameter_and_error_code() -> None:
    rows = re.findall(r"^\| `([A-Z]+) (\S+)` \| (.*?) ?\| (.*?) ?\|$", PAGE, re.MULTILINE)
    written = {
        (method, path): (set(re.findall(r"`(\w+)`", parameters)), {int(code) for code in re.findall(r"\d+", codes)})
        for method, path, parameters, codes in rows
    }
    declared = {(each.method, each.path): (set(each.parameters), set(each.codes)) for each in SERVED}
    assert written == {place: row for place, row in declared.items() if place[1] != "/schemas/types/"}
