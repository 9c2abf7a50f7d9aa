"""The schema registry asks for the login of everything else, at both of its addresses: ACLs, TLS, audit, metrics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from ottla.client.admin.acls import Acl, AclFilter
from ottla.core.security import CLUSTER_NAME, AclOperation, PatternType, ResourceType

from .securing import PASSWORDS, secured
from .test_rest import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

AVRO = '{"type":"record","name":"%s","fields":[]}'
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with (
        secured(tmp_path_factory.mktemp("registry"), acls=True, super_users=("User:admin",)) as broker,
        served(broker, tls=True, registry_port=0) as http,
    ):
        yield http


@pytest.fixture(params=["on the HTTP port", "on its own port"])
def url(rest: Served, request: pytest.FixtureRequest) -> str:
    return f"{rest.url}/schema-registry" if request.param == "on the HTTP port" else rest.schema_registry_url


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A subject, and the name of a record, of one test at one address."""
    return re.sub(r"\W", "_", request.node.name)


@pytest.fixture
def admin(rest: Served, url: str) -> Iterator[httpx.Client]:
    with rest.client(url, auth=("admin", PASSWORDS["admin"])) as client:
        yield client


@pytest.fixture
def ann(rest: Served, url: str) -> Iterator[httpx.Client]:
    with rest.client(url, auth=("ann", PASSWORDS["ann"])) as client:
        yield client


def allow(rest: Served, subject: str, *operations: AclOperation, prefixed: bool = False) -> None:
    kind = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    acls = [Acl("User:ann", each, ResourceType.TOPIC, f"_schemas:{subject}", kind) for each in operations]
    with rest.broker.admin() as admin:
        assert set(admin.create_acls(acls).values()) == {None}


def register(http: httpx.Client, subject: str, schema: str, **more: object) -> httpx.Response:
    return http.post(f"/subjects/{subject}/versions", json={"schema": schema, **more})


def code(answer: httpx.Response) -> tuple[int, int]:
    return answer.status_code, answer.json()["error_code"]


def test_without_a_login_nothing_is_answered_in_the_words_of_the_api(rest: Served, url: str) -> None:
    with rest.client(url) as anonymous, rest.client(url, auth=("ann", "wrong")) as mistaken:
        for http in (anonymous, mistaken):
            answer = http.get("/subjects")
            assert code(answer) == (401, 40101)
            assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
            assert "Basic" in answer.headers["www-authenticate"]


def test_a_token_is_a_login(rest: Served, url: str) -> None:
    with rest.client(url, headers={"authorization": f"Bearer {rest.broker.issuer.token('admin')}"}) as http:
        assert http.get("/subjects").status_code == 200


def test_without_acls_a_user_sees_and_changes_nothing(admin: httpx.Client, ann: httpx.Client, name: str) -> None:
    made = register(admin, name, AVRO % name).json()
    context = f":.{name}:s"
    assert register(admin, context, AVRO % name).status_code == 200
    assert code(register(ann, name, '"int"')) == (403, 40301)
    path, schema = f"/subjects/{name}", {"schema": AVRO % name}
    for method, refused, body in (
        ("GET", f"{path}/versions", None),
        ("GET", f"{path}/versions/1", None),
        ("GET", f"{path}/versions/1/schema", None),
        ("GET", f"{path}/versions/1/referencedby", None),
        ("GET", f"{path}/metadata", None),
        ("POST", path, schema),
        ("POST", f"/compatibility{path}/versions", schema),
        ("POST", f"/compatibility{path}/versions/1", schema),
        ("DELETE", path, None),
        ("DELETE", f"{path}/versions/1", None),
        *((method, f"/{kind}{of}", {"compatibility": "NONE", "mode": "READONLY"} if method == "PUT" else None)
          for method in ("GET", "PUT", "DELETE") for kind in ("config", "mode") for of in ("", f"/{name}")),
        ("DELETE", f"/contexts/.{name}", None),
    ):  # fmt: skip
        answer = ann.request(method, refused, json=body)
        assert code(answer) == (403, 40301), (method, refused)
    # Lists leave it out, and what cannot be read does not exist.
    assert ann.get("/subjects").json() == []
    assert ann.get("/schemas").json() == []
    assert f".{name}" not in ann.get("/contexts").json()
    assert f".{name}" in admin.get("/contexts").json()
    for missing in (f"ids/{made['id']}", f"ids/{made['id']}/subjects", f"guids/{made['guid']}"):
        assert code(ann.get(f"/schemas/{missing}")) == (404, 40403)
    assert admin.get(f"{path}/versions").json() == [1]


def test_each_operation_permits_its_requests(rest: Served, ann: httpx.Client, name: str) -> None:
    allow(rest, name, WRITE)
    number = register(ann, name, AVRO % name).json()["id"]
    assert code(ann.get(f"/subjects/{name}/versions/1")) == (403, 40301)
    allow(rest, name, READ)
    assert ann.get(f"/subjects/{name}/versions/1").json()["id"] == number
    assert ann.get(f"/schemas/ids/{number}").status_code == 200
    assert ann.post(f"/subjects/{name}", json={"schema": AVRO % name}).json()["id"] == number
    allow(rest, name, DESCRIBE)
    assert ann.get(f"/subjects/{name}/versions").json() == [1]
    assert name in ann.get("/subjects").json()
    allow(rest, name, AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
    assert ann.put(f"/config/{name}", json={"compatibility": "FULL"}).status_code == 200
    assert ann.get(f"/config/{name}").json() == {"compatibilityLevel": "FULL"}
    assert ann.put(f"/mode/{name}", json={"mode": "READONLY"}).status_code == 200
    assert ann.delete(f"/mode/{name}").status_code == 200
    allow(rest, name, AclOperation.DELETE)
    assert ann.delete(f"/subjects/{name}").json() == [1]


def test_a_prefix_is_that_of_subjects(rest: Served, ann: httpx.Client, name: str) -> None:
    allow(rest, f"{name}-", WRITE, READ, prefixed=True)
    assert register(ann, f"{name}-value", AVRO % name).status_code == 200
    assert code(register(ann, name, AVRO % name)) == (403, 40301)


def test_a_schema_is_not_read_through_a_reference(
    rest: Served, admin: httpx.Client, ann: httpx.Client, name: str
) -> None:
    register(admin, f"{name}-secret", AVRO % name)
    allow(rest, f"{name}-own", WRITE, READ)
    references = [{"name": name, "subject": f"{name}-secret", "version": 1}]
    schema = f'{{"type":"record","name":"own","fields":[{{"name":"f","type":"{name}"}}]}}'
    assert code(register(ann, f"{name}-own", schema, references=references)) == (403, 40301)
    body = {"schema": schema, "references": references}
    for path in (f"/subjects/{name}-own", f"/compatibility/subjects/{name}-own/versions"):
        assert code(ann.post(path, json=body)) == (403, 40301)
    allow(rest, f"{name}-secret", READ)
    assert register(ann, f"{name}-own", schema, references=references).status_code == 200


def test_global_settings_are_those_of_the_cluster(rest: Served, ann: httpx.Client, admin: httpx.Client) -> None:
    with rest.broker.admin() as kafka:
        needed = Acl("User:ann", AclOperation.ALTER_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME)
        kafka.create_acls([needed])
        assert ann.put("/config", json={"compatibility": "BACKWARD"}).status_code == 200
        kafka.delete_acls(AclFilter(principal="User:ann", resource_type=ResourceType.CLUSTER))
    assert code(ann.put("/config", json={"compatibility": "NONE"})) == (403, 40301)
    assert admin.get("/config").json() == {"compatibilityLevel": "BACKWARD"}


def test_changes_and_refusals_are_in_the_audit_log(
    rest: Served, admin: httpx.Client, ann: httpx.Client, name: str
) -> None:
    register(admin, name, AVRO % name)
    admin.put(f"/config/{name}", json={"compatibility": "NONE"})
    admin.delete(f"/config/{name}")
    admin.put(f"/mode/{name}", json={"mode": "READONLY"})
    admin.delete(f"/mode/{name}")
    admin.delete(f"/subjects/{name}/versions/1")
    admin.delete(f"/subjects/{name}/versions/1", params={"permanent": True})
    register(admin, name, AVRO % name)
    admin.delete(f"/subjects/{name}")
    admin.delete(f"/subjects/{name}", params={"permanent": True})
    register(ann, name, '"int"')
    lines = [line for line in rest.broker.audit() if name in str(line)]
    changes = [line["api"] for line in lines if line["event"] == "change"]
    assert changes == [
        "RegisterSchema",
        "UpdateSchemaConfig",
        "DeleteSchemaConfig",
        "UpdateSchemaMode",
        "DeleteSchemaMode",
        "DeleteSchemaVersion",
        "PurgeSchemaVersion",
        "RegisterSchema",
        "DeleteSubject",
        "PurgeSubject",
    ]
    assert {line["principal"] for line in lines if line["event"] == "change"} == {"User:admin"}
    [denied] = [line for line in lines if line["event"] != "change"]
    assert denied["principal"] == "User:ann"


def test_requests_subjects_and_records_are_in_the_metrics(rest: Served, admin: httpx.Client, name: str) -> None:
    register(admin, name, AVRO % name)
    with rest.by("admin") as http:
        text = http.get("/metrics").text
        assert http.get("/metrics").status_code == 200
    assert 'route="/schema-registry/subjects/{subject}/versions",status="200"' in text
    found = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if "schema_registry_" in line[:25]}
    assert found["ottla_schema_registry_subjects"] >= 1
    assert found["ottla_schema_registry_schemas"] >= 1
    assert found["ottla_schema_registry_written_records_total"] >= 1
    assert found["ottla_schema_registry_ignored_records_total"] == 0


def test_nothing_else_is_served_on_the_registrys_own_port(rest: Served) -> None:
    with rest.client(rest.schema_registry_url, auth=("admin", PASSWORDS["admin"])) as http:
        for path in ("/metrics", "/v1/topics", "/health", "/console/main.js", "/v1/session"):
            assert code(http.get(path)) == (404, 404)


def test_plain_http_is_not_answered_on_the_registrys_own_port(rest: Served) -> None:
    import httpx

    with (
        httpx.Client(base_url=rest.schema_registry_url.replace("https", "http")) as http,
        pytest.raises(httpx.HTTPError),
    ):
        http.get("/subjects")
