"""The Iceberg REST catalog requires the login and the ACLs of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.rest.lake_tables import table_of

from ottla.client.admin.acls import Acl
from ottla.core.security import AclOperation, ResourceType

from .securing import PASSWORDS, secured
from .test_rest import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

pytest.importorskip("pyiceberg")

TABLES = "/iceberg/v1/namespaces/topics/tables"


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    import pyarrow as pa

    folder = tmp_path_factory.mktemp("iceberg")
    with (
        secured(folder, acls=True, super_users=("User:admin",)) as broker,
        served(broker, tls=True) as http,
    ):
        rows = pa.table({"_offset": [1, 2]})
        for topic in ("read.by.ann", "described", "hidden"):
            with broker.admin() as admin:
                admin.create_topic(topic)
            table_of(folder / "data", topic, rows, {0: 3})
        table_of(folder / "data", "deleted.but.readable", rows, {0: 3})
        table_of(folder / "data", "deleted.and.hidden", rows, {0: 3})
        read, describe = AclOperation.READ, AclOperation.DESCRIBE
        granted = [("read.by.ann", read), ("described", describe), ("deleted.but.readable", read)]
        # Allowed for a topic with the name of the table, not for the topic of the table.
        granted.append(("deleted_and_hidden", read))
        with broker.admin() as admin:
            acls = [Acl("User:ann", operation, ResourceType.TOPIC, topic) for topic, operation in granted]
            assert set(admin.create_acls(acls).values()) == {None}
        yield http


@pytest.fixture
def ann(rest: Served) -> Iterator[httpx.Client]:
    with rest.by("ann") as client:
        yield client


def test_without_a_login_the_error_is_that_of_the_specification(rest: Served) -> None:
    with rest.client() as anonymous, rest.client(auth=("ann", "wrong")) as mistaken:
        for http in (anonymous, mistaken):
            refused = http.get("/iceberg/v1/config")
            assert refused.status_code == 401
            assert refused.json()["error"]["type"] == "NotAuthorizedException"
            assert "Basic" in refused.headers["www-authenticate"]


def test_tables_of_topics_that_a_user_may_describe_are_listed(rest: Served, ann: httpx.Client) -> None:
    listed = [each["name"] for each in ann.get(TABLES).json()["identifiers"]]
    assert listed == ["deleted_but_readable", "described", "read_by_ann"]
    with rest.by("admin") as admin:
        assert len(admin.get(TABLES).json()["identifiers"]) == 5


def test_a_table_is_loaded_by_users_who_may_read_its_topic(ann: httpx.Client) -> None:
    for table in ("read_by_ann", "deleted_but_readable"):
        assert ann.get(f"{TABLES}/{table}").status_code == 200
    assert ann.head(f"{TABLES}/described").status_code == 204
    refused = ann.get(f"{TABLES}/described")
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ForbiddenException")


@pytest.mark.parametrize("table", ["hidden", "deleted_and_hidden"])
def test_a_table_that_a_user_may_not_describe_does_not_exist_for_them(ann: httpx.Client, table: str) -> None:
    refused = ann.get(f"{TABLES}/{table}")
    assert (refused.status_code, refused.json()["error"]["type"]) == (404, "NoSuchTableException")
    assert ann.head(f"{TABLES}/{table}").status_code == 404


def test_a_token_is_a_login(rest: Served) -> None:
    with rest.client(headers={"authorization": f"Bearer {rest.broker.issuer.token('ann')}"}) as http:
        assert http.get(f"{TABLES}/read_by_ann").status_code == 200


def test_pyiceberg_logs_in_with_a_password(rest: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from pyiceberg.catalog import load_catalog

    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    login = {"type": "basic", "basic": {"username": "ann", "password": PASSWORDS["ann"]}}
    trust = {"cabundle": str(rest.broker.authority.cert)}
    uri = rest.url.replace("127.0.0.1", "localhost") + "/iceberg"
    catalog = load_catalog("ottla", type="rest", uri=uri, auth=login, ssl=trust)
    assert catalog.load_table("topics.read_by_ann").scan().to_arrow().num_rows == 2
