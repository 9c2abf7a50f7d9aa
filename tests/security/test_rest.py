"""REST with the same users and ACLs as Kafka."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from ottla.client.admin.acls import Acl
from ottla.core.security import AclOperation, ResourceType
from ottla.http.config import HttpConfig
from ottla.http.queues.config import QueuesConfig
from ottla.http.server import HttpServer

from .securing import PASSWORDS, Secured, secured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 20.0


class Served:
    def __init__(self, broker: Secured, http: HttpServer) -> None:
        self.broker = broker
        self._http = http

    @property
    def url(self) -> str:
        return self._http.url

    @property
    def schema_registry_url(self) -> str:
        return self._http.schema_registry_url

    def client(self, url: str = "", **options: Any) -> httpx.Client:
        url = (url or self._http.url).replace("127.0.0.1", "localhost")
        trust = ssl.create_default_context(cafile=str(self.broker.authority.cert))
        return httpx.Client(base_url=url, verify=trust, timeout=PATIENCE_S, **options)

    def by(self, user: str) -> httpx.Client:
        return self.client(auth=(user, PASSWORDS[user]))


@contextmanager
def served(broker: Secured, *, registry_port: int = -1, **options: Any) -> Iterator[Served]:
    loop = broker.embedded._loop
    assert loop is not None
    queues = QueuesConfig(data_directory=broker.folder / "queues")

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE_S)

    async def start() -> HttpServer:
        config = HttpConfig(**{"port": 0, **options})
        http = HttpServer(broker.embedded.broker, config, "127.0.0.1", queues, registry_port=registry_port)
        await http.bind()
        http.start()
        return http

    http = run(start())
    try:
        yield Served(broker, http)
    finally:
        run(http.stop())


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("rest")
    with (
        secured(folder, acls=True, super_users=("User:admin",)) as broker,
        served(broker, tls=True) as http,
    ):
        yield http


def allow(rest: Served, *needed: tuple[str, AclOperation, ResourceType, str]) -> None:
    with rest.broker.admin() as admin:
        assert set(admin.create_acls(Acl(f"User:{who}", *rest) for who, *rest in needed).values()) == {None}


def test_unauthenticated_requests_are_refused(rest: Served) -> None:
    with rest.client() as http:
        for path in ("/v1/topics", "/v1/groups", "/v1/broker", "/metrics", "/v1/users", "/api/v1/queues", "/v1/none"):
            answer = http.get(path)
            assert answer.status_code == 401, path
            assert "Basic" in answer.headers["www-authenticate"]


def test_the_console_health_and_openapi_need_no_login(rest: Served) -> None:
    with rest.client() as http:
        for path in ("/", "/health", "/ready", "/v1/openapi.json", "/v1/session"):
            assert http.get(path).status_code == 200, path


@pytest.mark.parametrize(
    "header",
    ["Basic YW5uOndyb25n", "Basic !", "Basic YW5u", "Bearer nonsense", "Negotiate x", "", "Basic", "Bearer a.b.c"],
)
def test_a_wrong_login_is_refused(rest: Served, header: str) -> None:
    with rest.client(headers={"authorization": header}) as http:
        assert http.get("/v1/topics").status_code == 401


def test_a_password_a_token_and_a_session_are_the_same_user(rest: Served) -> None:
    token = rest.broker.issuer.token("admin")
    with rest.by("admin") as by_password, rest.client(headers={"authorization": f"Bearer {token}"}) as by_token:
        for http in (by_password, by_token):
            assert http.get("/v1/session").json()["principal"] == "User:admin"
            assert http.get("/v1/topics").status_code == 200
    with rest.client() as browser:
        assert browser.post("/v1/session", json={"user": "admin", "password": "wrong"}).status_code == 401
        begun = browser.post("/v1/session", json={"user": "admin", "password": PASSWORDS["admin"]})
        assert begun.status_code == 201
        cookie = begun.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "secure" in cookie
        assert browser.get("/v1/topics").status_code == 200
        assert browser.delete("/v1/session").status_code == 200
        assert browser.get("/v1/topics").status_code == 401


def test_an_expired_token_is_refused(rest: Served) -> None:
    token = rest.broker.issuer.token("admin", exp=1)
    with rest.client(headers={"authorization": f"Bearer {token}"}) as http:
        assert http.get("/v1/topics").status_code == 401


def test_acls_apply_to_rest_requests(rest: Served) -> None:
    with rest.by("admin") as admin, rest.by("ann") as ann:
        for name in ("seen", "unseen"):
            assert admin.post("/v1/topics", json={"name": name}).status_code == 201
        message = {"messages": [{"value": "x"}]}
        assert ann.get("/v1/topics").json() == {"topics": []}
        assert ann.get("/v1/topics/seen").status_code == 403
        assert ann.post("/v1/topics/seen/messages", json=message).status_code == 403
        allow(
            rest,
            ("ann", AclOperation.READ, ResourceType.TOPIC, "seen"),
            ("ann", AclOperation.WRITE, ResourceType.TOPIC, "seen"),
        )
        assert [one["name"] for one in ann.get("/v1/topics").json()["topics"]] == ["seen"]
        assert ann.post("/v1/topics/seen/messages", json=message).status_code == 200
        assert len(ann.get("/v1/topics/seen/messages").json()["messages"]) == 1
        for refused in (
            ann.get("/v1/topics/unseen/messages"),
            ann.get("/v1/topics/unseen/tail"),
            ann.get("/v1/topics/seen/configs"),
            ann.delete("/v1/topics/seen"),
            ann.post("/v1/topics", json={"name": "new"}),
            ann.post("/v1/topics/new/messages", json=message),
            ann.get("/v1/consumers/c/messages", params={"topic": "unseen"}),
            ann.get("/v1/users"),
            ann.get("/v1/acls"),
            ann.get("/metrics"),
            ann.get("/v1/totals"),
            ann.get("/v1/clients"),
            ann.get("/v1/log-dirs"),
            ann.get("/v1/configs"),
            ann.get("/v1/groups/g"),
            ann.delete("/v1/groups/g"),
        ):
            assert refused.status_code == 403, refused.request.url


def test_users_and_acls_are_managed(rest: Served) -> None:
    with rest.by("admin") as http:
        assert http.put("/v1/users/zoe", json={"password": "zoes"}).status_code == 200
        assert "zoe" in [one["name"] for one in http.get("/v1/users").json()["users"]]
        with rest.client(auth=("zoe", "zoes")) as zoe:
            assert zoe.get("/v1/broker").status_code == 200
            assert http.put("/v1/users/zoe", json={"password": "other"}).status_code == 200
            assert zoe.get("/v1/broker").status_code == 401  # although the old one was cached as valid
        acl = {"principal": "User:zoe", "operation": "READ", "resource_type": "TOPIC", "resource_name": "zoes"}
        assert http.post("/v1/acls", json=acl).status_code == 201
        [listed] = http.get("/v1/acls", params={"principal": "User:zoe"}).json()["acls"]
        assert listed == {**acl, "pattern_type": "LITERAL", "permission": "ALLOW", "host": "*"}
        assert http.delete("/v1/acls", params={"principal": "User:zoe"}).json() == {"deleted": 1}
        assert http.delete("/v1/users/zoe").status_code == 200
        assert http.delete("/v1/users/zoe").status_code == 404


def test_a_session_ends_when_its_password_changes(rest: Served) -> None:
    with rest.by("admin") as http, rest.client() as browser:
        http.put("/v1/users/eve", json={"password": "first"})
        assert browser.post("/v1/session", json={"user": "eve", "password": "first"}).status_code == 201
        assert browser.get("/v1/broker").status_code == 200
        http.put("/v1/users/eve", json={"password": "second"})
        assert browser.get("/v1/broker").status_code == 401


def test_queues_use_the_acls_of_topics_with_their_names(rest: Served) -> None:
    with rest.by("admin") as admin, rest.by("bob") as bob:
        assert admin.post("/api/v1/queues", json={"name": "jobs"}).status_code == 201
        assert bob.get("/api/v1/queues/jobs").status_code == 403
        assert bob.post("/api/v1/queues/jobs/messages", content=b'"x"').status_code == 403
        allow(rest, ("bob", AclOperation.WRITE, ResourceType.TOPIC, "jobs"))
        assert bob.post("/api/v1/queues/jobs/messages", content=b'"x"').status_code == 200
        assert bob.get("/api/v1/queues/jobs/consumers/c/messages").status_code == 403
        assert bob.delete("/api/v1/queues/jobs").status_code == 403


def test_other_origins_are_refused_unless_configured(rest: Served) -> None:
    with rest.by("admin") as http:
        elsewhere = {"origin": "https://evil.example"}
        assert http.post("/v1/topics", json={"name": "evil"}, headers=elsewhere).status_code == 403
        assert "access-control-allow-origin" not in http.get("/v1/topics", headers=elsewhere).headers


def test_plain_http_on_the_https_port_is_not_answered(rest: Served) -> None:
    with rest.client() as http:
        url = str(http.base_url).replace("https", "http")
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"{url}/health", timeout=PATIENCE_S)


def test_logins_and_failed_handshakes_are_counted(rest: Served) -> None:
    with rest.client(auth=("ann", "wrong")) as wrong:
        assert wrong.get("/v1/topics").status_code == 401
    with rest.by("admin") as http:
        text = http.get("/metrics").text
        assert 'ottla_logins_total{mechanism="basic",outcome="failed"}' in text
        assert "ottla_tls_failures_total{" in text


def test_roles_are_listed_with_members_and_rules_and_changed(rest: Served) -> None:
    with rest.by("admin") as http, rest.by("ann") as ann:
        rule = {"principal": "Role:analyst", "operation": "READ", "resource_type": "TOPIC", "resource_name": "orders"}
        assert http.post("/v1/acls", json=rule).status_code == 201
        for member in ("User:ann", "Group:sales", "Role:boss"):
            assert http.put(f"/v1/roles/analyst/members/{member}").status_code == 200
        listed = {one["name"]: one for one in http.get("/v1/roles").json()["roles"]}
        assert listed["analyst"]["members"] == ["Group:sales", "Role:boss", "User:ann"]
        assert [(one["operation"], one["resource_name"]) for one in listed["analyst"]["rules"]] == [("READ", "orders")]
        assert (listed["boss"]["members"], listed["boss"]["rules"]) == ([], [])
        assert http.delete("/v1/roles/analyst/members/User:ann").status_code == 200
        assert http.delete("/v1/roles/analyst/members/User:ann").status_code == 404
        assert http.put("/v1/roles/analyst/members/ann").status_code == 400
        assert ann.get("/v1/roles").status_code == 403
        assert ann.put("/v1/roles/analyst/members/User:ann").status_code == 403
        assert http.delete("/v1/roles/analyst").status_code == 200
        assert "analyst" not in {one["name"] for one in http.get("/v1/roles").json()["roles"]}
        assert http.delete("/v1/roles/analyst").status_code == 404


def test_a_certificate_logs_in_over_http(tmp_path: Path) -> None:
    with (
        secured(tmp_path, acls=True, super_users=("User:admin",)) as broker,
        served(broker, tls=True, client_certificates="requested") as http,
    ):
        files = broker.authority.client("Admin")
        trust = ssl.create_default_context(cafile=str(broker.authority.cert))
        trust.load_cert_chain(files.cert, files.key)
        with httpx.Client(base_url=http.url.replace("127.0.0.1", "localhost"), verify=trust) as client:
            assert client.get("/v1/session").json()["principal"] == "User:admin"
            assert client.get("/v1/topics").status_code == 200
            assert client.get("/v1/topics", auth=("ann", PASSWORDS["ann"])).status_code in (200, 403)
        with http.client() as stranger:
            assert stranger.get("/v1/topics").status_code == 401


def test_if_http_requires_a_certificate_a_password_is_not_enough(tmp_path: Path) -> None:
    with secured(tmp_path) as broker, served(broker, tls=True, client_certificates="required") as http:
        with http.by("admin") as client, pytest.raises(httpx.TransportError):
            client.get("/v1/topics")
        with pytest.raises(ValueError, match="client_certificates has no effect without tls"):
            HttpConfig(client_certificates="required")


def test_a_short_password_is_refused_over_http(tmp_path: Path) -> None:
    with (
        secured(tmp_path, password_min_length=10) as broker,
        served(broker, tls=True) as http,
        http.by("admin") as client,
    ):
        refused = client.put("/v1/users/carl", json={"password": "short"})
        assert refused.status_code in (400, 422)
        assert "security.password_min_length is 10" in refused.text
        assert client.put("/v1/users/carl", json={"password": "long enough"}).status_code == 200
