"""The registry's API over HTTP: every path, and the error codes."""

from __future__ import annotations

import json
from itertools import count
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.rest.serving import HttpBroker

from ottla.http.config import HttpConfig
from ottla.http.server import HttpServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
V1 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
V2 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'
_numbers = count(1)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    with HttpBroker(tmp_path_factory.mktemp("broker")) as served:
        yield served


@pytest.fixture(scope="module")
def http(served: HttpBroker) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{served.url}/schema-registry", timeout=20) as client:
        yield client


@pytest.fixture
def subject() -> str:
    return f"subject-{next(_numbers)}"


def unique(name: str) -> str:
    """A schema that no other test registers."""
    return json.dumps({"type": "record", "name": name.replace("-", "_"), "fields": []})


def register(http: httpx.Client, subject: str, schema: str, **more: Any) -> dict[str, Any]:
    answer = http.post(f"/subjects/{subject}/versions", json={"schema": schema, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def error(answer: httpx.Response) -> int:
    assert answer.headers["content-type"] == MEDIA_TYPE
    content = answer.json()
    assert content.keys() == {"error_code", "message"}
    code = int(content["error_code"])
    assert answer.status_code == (code if code < 1000 else code // 100)
    return code


def test_registering_and_reading_by_version_id_and_guid(http: httpx.Client, subject: str) -> None:
    made = register(http, subject, unique(subject))
    assert made["version"] == 1
    version = http.get(f"/subjects/{subject}/versions/1").json()
    assert version == made | {"subject": subject}
    assert http.get(f"/subjects/{subject}/versions/latest").json() == version
    assert http.get(f"/subjects/{subject}/versions/-1").json() == version
    assert http.get(f"/subjects/{subject}/versions/1/schema").json() == json.loads(made["schema"])
    by_id = http.get(f"/schemas/ids/{made['id']}")
    assert by_id.headers["content-type"] == MEDIA_TYPE
    assert by_id.json() == {key: made[key] for key in ("guid", "schemaType", "schema")}
    assert http.get(f"/schemas/ids/{made['id']}/schema").json() == json.loads(made["schema"])
    assert http.get(f"/schemas/ids/{made['id']}/subjects").json() == [subject]
    assert http.get(f"/schemas/ids/{made['id']}/versions").json() == [{"subject": subject, "version": 1}]
    assert http.get(f"/schemas/ids/{made['id']}?fetchMaxId=true").json()["maxId"] >= made["id"]
    assert http.get(f"/schemas/guids/{made['guid']}").json()["schema"] == made["schema"]
    assert http.get(f"/schemas/guids/{made['guid']}/ids").json() == [{"context": ".", "id": made["id"]}]
    assert http.post(f"/subjects/{subject}", json={"schema": unique(subject)}).json() == version
    assert http.get(f"/subjects/{subject}/versions").json() == [1]
    assert subject in http.get("/subjects").json()
    assert version in http.get("/schemas").json()


def test_server_information(http: httpx.Client) -> None:
    assert http.get("/").json() == {}
    assert http.get("/schemas/types").json() == ["JSON", "PROTOBUF", "AVRO"]
    assert http.get("/v1/metadata/id").json()["scope"]["clusters"]["kafka-cluster"]
    assert http.get("/v1/metadata/version").json()["version"]
    assert http.get("/config").json() == {"compatibilityLevel": "BACKWARD"}
    assert http.get("/mode").json() == {"mode": "READWRITE"}


def test_missing_subjects_versions_and_schemas_have_different_errors(http: httpx.Client, subject: str) -> None:
    assert error(http.get("/schemas/ids/99999")) == 40403
    assert error(http.get("/schemas/ids/99999/subjects")) == 40403
    assert error(http.get("/schemas/ids/99999/versions")) == 40403
    assert error(http.get("/schemas/ids/nonsense")) == 404
    assert error(http.get("/schemas/guids/00000000-0000-0000-0000-000000000000")) == 40403
    assert error(http.get("/schemas/guids/nonsense")) == 40403
    assert error(http.get(f"/subjects/{subject}/versions")) == 40401
    assert error(http.get(f"/subjects/{subject}/versions/1")) == 40401
    assert error(http.delete(f"/subjects/{subject}")) == 40401
    assert error(http.post(f"/subjects/{subject}", json={"schema": '"int"'})) == 40401
    assert error(http.get(f"/config/{subject}")) == 40408
    assert error(http.get(f"/mode/{subject}")) == 40409
    register(http, subject, V1)
    assert error(http.get(f"/subjects/{subject}/versions/9")) == 40402
    assert error(http.get(f"/subjects/{subject}/versions/0")) == 42202
    assert error(http.get(f"/subjects/{subject}/versions/next")) == 42202
    assert error(http.post(f"/subjects/{subject}", json={"schema": unique(subject)})) == 40403
    assert error(http.get(f"/subjects/{subject}/metadata?key=a&value=b")) == 40403
    assert error(http.get("/nothing")) == 404
    assert error(http.request("PATCH", "/subjects")) == 405


def test_bad_requests_are_refused(http: httpx.Client, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    assert error(http.post(path, content=b"{")) == 400
    assert error(http.post(path, json=[])) == 400
    assert error(http.post(path, json={"schema": 5})) == 422
    assert error(http.post(path, json={"schema": '"nope"'})) == 42201
    assert error(http.post(path, json={"schema": "{}", "schemaType": "XML"})) == 42201
    assert error(http.post(path, json={"schema": '"int"', "references": [{"name": "a"}]})) == 422
    assert error(http.post(path, json={"schema": '"int"', "id": "five"})) == 422
    assert error(http.post(path, json={"schema": '"int"', "ruleSet": {"domainRules": [{"name": "9"}]}})) == 42210
    assert error(http.post(path, content=b"{}", headers={"content-type": "text/csv"})) == 415
    assert error(http.get("/subjects", headers={"accept": "image/png"})) == 406
    assert error(http.get("/subjects?limit=many")) == 400
    assert error(http.post("/subjects/__GLOBAL/versions", json={"schema": '"int"'})) == 42208
    assert error(http.put(f"/config/{subject}", json={"compatibility": "MAYBE"})) == 42203
    assert error(http.put(f"/mode/{subject}", json={"mode": "MAYBE"})) == 42204


def test_a_client_that_prefers_plain_json_gets_it(http: httpx.Client) -> None:
    assert http.get("/subjects", headers={"accept": "application/json"}).headers["content-type"] == "application/json"


def test_compatibility_is_checked_with_reasons_if_asked(http: httpx.Client, subject: str) -> None:
    path = f"/compatibility/subjects/{subject}/versions"
    assert http.post(f"{path}/latest", json={"schema": V1}).json() == {"is_compatible": True}
    register(http, subject, V1)
    assert http.post(f"{path}/latest", json={"schema": V2}).json() == {"is_compatible": True}
    assert http.post(path, json={"schema": '"int"'}).json() == {"is_compatible": False}
    verbose = http.post(f"{path}/1?verbose=true", json={"schema": '"int"'}).json()
    assert not verbose["is_compatible"]
    assert "TYPE_MISMATCH" in verbose["messages"][0]
    assert http.post(f"{path}?verbose=true", json={"schema": '"nope"'}).json()["is_compatible"] is False
    assert error(http.post(path, json={"schema": '"nope"'})) == 42201
    assert error(http.post(f"{path}/7", json={"schema": V2})) == 40402
    refused = http.post(f"/subjects/{subject}/versions", json={"schema": '"int"'})
    assert error(refused) == 40901
    assert "TYPE_MISMATCH" in refused.json()["message"]
    assert http.post(f"/subjects/{subject}/versions?force=true", json={"schema": '"int"'}).status_code == 200


def test_configs_and_modes(http: httpx.Client, subject: str) -> None:
    assert http.put(f"/config/{subject}", json={"compatibility": "full"}).json() == {"compatibility": "full"}
    assert http.get(f"/config/{subject}").json() == {"compatibilityLevel": "FULL"}
    assert http.get(f"/config/x-{subject}?defaultToGlobal=true").json() == {"compatibilityLevel": "BACKWARD"}
    assert http.delete(f"/config/{subject}").json() == {"compatibilityLevel": "FULL"}
    assert error(http.delete(f"/config/{subject}")) == 40401
    assert http.put(f"/mode/{subject}", json={"mode": "READONLY"}).json() == {"mode": "READONLY"}
    assert error(http.post(f"/subjects/{subject}/versions", json={"schema": V1})) == 42205
    assert http.get(f"/mode/{subject}").json() == {"mode": "READONLY"}
    assert http.delete(f"/mode/{subject}").json() == {"mode": "READONLY"}
    assert error(http.delete(f"/mode/{subject}")) == 40401
    assert http.get(f"/mode/{subject}?defaultToGlobal=true").json() == {"mode": "READWRITE"}


def test_global_configs_and_modes(http: httpx.Client, subject: str) -> None:
    try:
        assert http.put("/config", json={"compatibility": "NONE"}).status_code == 200
        register(http, subject, V1)
        register(http, subject, '"int"')
        assert http.put("/mode", json={"mode": "READONLY"}).status_code == 200
        assert error(http.post(f"/subjects/{subject}/versions", json={"schema": '"long"'})) == 42205
    finally:
        assert http.delete("/mode").json() == {"mode": "READONLY"}
        assert http.delete("/config").json() == {"compatibilityLevel": "NONE"}
    assert http.get("/config").json() == {"compatibilityLevel": "BACKWARD"}


def test_deleting_in_two_steps(http: httpx.Client, subject: str) -> None:
    register(http, subject, V1)
    register(http, subject, V2)
    assert error(http.delete(f"/subjects/{subject}/versions/1?permanent=true")) == 40407
    assert http.delete(f"/subjects/{subject}/versions/1").json() == 1
    assert error(http.delete(f"/subjects/{subject}/versions/1")) == 40406
    assert error(http.delete(f"/subjects/{subject}?permanent=true")) == 40405
    assert http.get(f"/subjects/{subject}/versions").json() == [2]
    assert http.get(f"/subjects/{subject}/versions?deleted=true").json() == [1, 2]
    assert http.get(f"/subjects/{subject}/versions?deletedOnly=true").json() == [1]
    assert http.get(f"/subjects/{subject}/versions/1?deleted=true").json()["deleted"] is True
    assert http.delete(f"/subjects/{subject}").json() == [2]
    assert error(http.delete(f"/subjects/{subject}")) == 40404
    assert subject not in http.get("/subjects").json()
    assert subject in http.get("/subjects?deleted=true").json()
    assert subject in http.get("/subjects?deletedOnly=true").json()
    assert http.delete(f"/subjects/{subject}?permanent=true").json() == [1, 2]
    assert subject not in http.get("/subjects?deleted=true").json()


def test_references(http: httpx.Client, subject: str) -> None:
    target = f"target-{subject}"
    register(http, target, '{"type":"record","name":"Target","fields":[]}')
    using = f'{{"type":"record","name":"{subject.replace("-", "_")}","fields":[{{"name":"t","type":"Target"}}]}}'
    made = register(http, subject, using, references=[{"name": "Target", "subject": target, "version": 1}])
    assert http.get(f"/subjects/{target}/versions/1/referencedby").json() == [made["id"]]
    assert error(http.delete(f"/subjects/{target}/versions/1")) == 42206
    resolved = http.get(f"/schemas/ids/{made['id']}?format=resolved").json()["schema"]
    assert json.loads(resolved)["fields"][0]["type"]["name"] == "Target"


def test_contexts_have_separate_subjects_and_ids(http: httpx.Client, subject: str) -> None:
    context = f".{subject}"
    made = register(http, f":{context}:{subject}", unique(subject))
    assert made["id"] == 1
    assert context in http.get("/contexts").json()
    assert http.get(f"/contexts/{context}/subjects").json() == [f":{context}:{subject}"]
    assert http.get(f"/contexts/:{context}:/subjects/{subject}/versions").json() == [1]
    assert http.get(f"/contexts/{context}/schemas/ids/1").json()["schema"] == made["schema"]
    assert http.get(f"/schemas/ids/1?subject=:{context}:").json()["schema"] == made["schema"]
    assert http.get(f"/subjects?subjectPrefix=:{context}:").json() == [f":{context}:{subject}"]
    assert error(http.delete(f"/contexts/{context}")) == 42211
    http.delete(f"/subjects/:{context}:{subject}")
    http.delete(f"/subjects/:{context}:{subject}?permanent=true")
    assert http.delete(f"/contexts/{context}").status_code == 204
    assert context not in http.get("/contexts").json()


def test_an_alias_leads_to_another_subject(http: httpx.Client, subject: str) -> None:
    register(http, subject, unique(subject))
    http.put(f"/config/alias-{subject}", json={"alias": subject})
    assert http.get(f"/subjects/alias-{subject}/versions/1").json()["subject"] == subject


def test_metadata_and_rules_are_stored_and_found(http: httpx.Client, subject: str) -> None:
    rules = {"domainRules": [{"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    register(http, subject, V1, metadata={"properties": {"owner": "ann"}}, ruleSet=rules)
    found = http.get(f"/subjects/{subject}/metadata?key=owner&value=ann").json()
    assert found["metadata"] == {"properties": {"owner": "ann"}}
    assert found["ruleSet"]["domainRules"][0]["expr"] == "true"


def test_pages_of_a_list(http: httpx.Client, subject: str) -> None:
    for number in range(3):
        register(http, f"{subject}-{number}", V1)
    listed = http.get(f"/subjects?subjectPrefix={subject}-&offset=1&limit=1").json()
    assert listed == [f"{subject}-1"]


def test_a_subject_with_a_slash(http: httpx.Client, subject: str) -> None:
    made = register(http, f"{subject}%2Fvalue", V1)
    assert http.get(f"/subjects/{subject}%2Fvalue/versions").json() == [made["version"]]
    assert f"{subject}/value" in http.get("/subjects").json()


def test_all_types_of_schemas(http: httpx.Client, subject: str) -> None:
    register(http, f"{subject}-json", '{"type":"object"}', schemaType="JSON")
    proto = register(http, f"{subject}-proto", 'syntax = "proto3"; message M { string s = 1; }', schemaType="PROTOBUF")
    assert proto["schema"] == 'syntax = "proto3";\n\nmessage M {\n  string s = 1;\n}\n'
    serialized = http.get(f"/schemas/ids/{proto['id']}?format=serialized").json()["schema"]
    again = register(http, f"{subject}-again", serialized, schemaType="PROTOBUF")
    assert again["id"] == proto["id"]
    assert "schema" not in again


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    with HttpBroker(tmp_path) as served:
        url = f"{served.url}/schema-registry"
        httpx.post(f"{url}/subjects/s/versions", json={"schema": V1})
        httpx.put(f"{url}/config/s", json={"compatibility": "FULL"})
    with HttpBroker(tmp_path) as served:
        url = f"{served.url}/schema-registry"
        assert httpx.get(f"{url}/subjects/s/versions/1").json()["schema"] == V1
        assert httpx.get(f"{url}/config/s").json() == {"compatibilityLevel": "FULL"}
        assert httpx.post(f"{url}/subjects/s/versions", json={"schema": V2}).json()["id"] == 2


def test_the_registry_is_at_the_root_of_a_separate_port(served: HttpBroker) -> None:
    http = HttpServer(served.broker, HttpConfig(port=0), "127.0.0.1", served._queues, registry_port=0)

    async def start() -> None:
        await http.bind()
        http.start()

    served.run(start())
    try:
        assert http.schema_registry_url == f"http://{http.registry_address}"
        for path in ("/subjects", "/schemas/types", "/schemas/types/", "/config", "/"):
            assert httpx.get(http.schema_registry_url + path).status_code == 200, path
    finally:
        served.run(http.stop())


def test_reading_creates_no_topic(tmp_path: Path) -> None:
    with HttpBroker(tmp_path) as served:
        assert httpx.get(f"{served.url}/schema-registry/subjects").json() == []
        assert "_schemas" not in served.broker.topics.by_name


def test_the_schemas_topic_of_another_registry_is_adopted(tmp_path: Path) -> None:
    from kafka import KafkaProducer

    key = b'{"keytype":"SCHEMA","subject":"old-value","version":1,"magic":1}'
    value = b'{"subject":"old-value","version":1,"id":100,"schema":"\\"string\\"","deleted":false}'
    with HttpBroker(tmp_path) as served:
        url = f"{served.url}/schema-registry"
        httpx.post(f"{url}/subjects/new-value/versions", json={"schema": V1})
        producer = KafkaProducer(bootstrap_servers=served.servers)
        producer.send("_schemas", key=b'{"keytype":"NOOP","magic":0}', value=None)
        producer.send("_schemas", key=b"nonsense", value=b"nonsense")
        producer.send("_schemas", key=key, value=value).get(10)
        producer.close()
        assert httpx.get(f"{url}/schemas/ids/100").json()["schema"] == '"string"'
        assert httpx.post(f"{url}/subjects/old-value", json={"schema": '"string"'}).json()["id"] == 100
        assert httpx.post(f"{url}/subjects/new-value/versions", json={"schema": V2}).json()["id"] == 101
