"""The Iceberg REST catalog: over HTTP, and with PyIceberg as a client."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from ottla.http.iceberg.lake import Lake, topic_in

from .lake_tables import table_of
from .serving import HttpBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import httpx

pytest.importorskip("pyiceberg")

TABLES = "/iceberg/v1/namespaces/topics/tables"


def orders(*ids: int) -> Any:
    import pyarrow as pa

    return pa.table({"_offset": pa.array(ids, pa.int64()), "item": [f"item {each}" for each in ids]})


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    data = tmp_path_factory.mktemp("lake broker")  # with a space, as a folder may have one
    with HttpBroker(data) as served:
        for topic in ("orders", "eu.orders", "clicks"):
            served.client.post("/v1/topics", json={"name": topic, "partitions": 1})
            table_of(data, topic, orders(1, 2), {0: 3})
        table_of(data, "deleted.topic", orders(1), {0: 2})
        yield served


def test_the_config_lists_the_operations(http: httpx.Client) -> None:
    config = http.get("/iceberg/v1/config", params={"warehouse": "anything"}).json()

    assert config["defaults"] == config["overrides"] == {}
    assert "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}" in config["endpoints"]
    assert not [each for each in config["endpoints"] if each.startswith("DELETE")]


def test_tables_are_listed_in_pages_if_a_client_wants_pages(http: httpx.Client) -> None:
    everything = http.get(TABLES).json()
    assert [each["name"] for each in everything["identifiers"]] == ["clicks", "deleted_topic", "eu_orders", "orders"]
    assert everything["next-page-token"] is None

    first = http.get(TABLES, params={"pageSize": "3", "pageToken": ""}).json()
    second = http.get(TABLES, params={"pageSize": "3", "pageToken": first["next-page-token"]}).json()
    assert len(first["identifiers"]) == 3
    assert [each["name"] for each in second["identifiers"]] == ["orders"]
    assert second["next-page-token"] is None
    assert http.get(TABLES, params={"pageSize": "-1"}).json()["error"]["code"] == 400


def test_namespaces_are_listed_and_loaded(http: httpx.Client) -> None:
    assert http.get("/iceberg/v1/namespaces").json()["namespaces"] == [["topics"]]
    assert http.get("/iceberg/v1/namespaces", params={"parent": "topics"}).json()["namespaces"] == []
    assert http.get("/iceberg/v1/namespaces/topics").json()["namespace"] == ["topics"]
    assert http.head("/iceberg/v1/namespaces/topics").status_code == 204
    assert http.head("/iceberg/v1/namespaces/none").status_code == 404
    refused = http.get("/iceberg/v1/namespaces/a%1Fb")
    assert refused.json()["error"]["type"] == "NoSuchNamespaceException"
    assert "a.b" in refused.json()["error"]["message"]


def test_a_table_is_loaded_with_its_metadata(http: httpx.Client) -> None:
    loaded = http.get(f"{TABLES}/eu_orders").json()

    assert loaded["metadata"]["properties"]["ottla.topic"] == "eu.orders"
    assert loaded["metadata-location"].endswith(".metadata.json")
    assert loaded["config"] == {}
    assert http.head(f"{TABLES}/eu_orders").status_code == 204
    assert http.get(f"{TABLES}/eu_orders/credentials").json() == {"storage-credentials": []}


def test_a_table_that_did_not_change_is_not_sent_again(http: httpx.Client) -> None:
    tag = http.get(f"{TABLES}/orders").headers["etag"]

    assert http.get(f"{TABLES}/orders", headers={"if-none-match": tag}).status_code == 304
    assert http.get(f"{TABLES}/orders?snapshots=refs", headers={"if-none-match": tag}).status_code == 200


def test_only_referenced_snapshots_are_sent_on_request(served: HttpBroker) -> None:
    data = served.broker.config.data_dir
    table_of(data, "clicks", orders(3), {0: 4})

    everything = served.client.get(f"{TABLES}/clicks").json()["metadata"]
    referenced = served.client.get(f"{TABLES}/clicks?snapshots=refs").json()["metadata"]
    assert len(everything["snapshots"]) == 2
    assert [each["snapshot-id"] for each in referenced["snapshots"]] == [everything["current-snapshot-id"]]


def test_a_metadata_file_that_is_replaced_while_it_is_read_is_read_again(
    served: HttpBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = served.broker.config.data_dir
    lake = Lake(data / "lake")
    stale = dict.fromkeys(lake.tables("topics"), f"file://{data}/removed.metadata.json")
    answers = [stale, lake.tables("topics"), lake.tables("topics")]
    monkeypatch.setattr(lake, "tables", lambda _: answers.pop(0))

    found = lake.load("topics", "orders")

    assert found is not None
    assert topic_in(found[1], "") == "orders"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/iceberg/v1/namespaces"),
        ("POST", TABLES),
        ("POST", f"{TABLES}/orders"),
        ("DELETE", f"{TABLES}/orders"),
        ("POST", "/iceberg/v1/tables/rename"),
        ("POST", "/iceberg/v1/transactions/commit"),
    ],
)
def test_changes_are_refused(http: httpx.Client, method: str, path: str) -> None:
    refused = http.request(method, path)

    assert refused.status_code == 403
    assert refused.json()["error"]["type"] == "ForbiddenException"
    assert "ottla lake" in refused.json()["error"]["message"]


def test_reports_of_scans_are_accepted(http: httpx.Client) -> None:
    assert http.post(f"{TABLES}/orders/metrics", json={"report-type": "scan-report"}).status_code == 204


def test_there_are_no_views(http: httpx.Client) -> None:
    assert http.get("/iceberg/v1/namespaces/topics/views").json()["identifiers"] == []
    assert http.get("/iceberg/v1/namespaces/topics/views/v").json()["error"]["type"] == "NoSuchViewException"


def test_unknown_tables_paths_and_methods_get_errors_of_the_specification(http: httpx.Client) -> None:
    assert http.get(f"{TABLES}/none").json()["error"]["type"] == "NoSuchTableException"
    assert http.get("/iceberg/v2/config").json()["error"]["code"] == 404
    refused = http.put(f"{TABLES}/orders")
    assert refused.status_code == refused.json()["error"]["code"] == 405


def test_every_operation_is_described(http: httpx.Client) -> None:
    described = http.get("/iceberg/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    for each in http.get("/iceberg/v1/config").json()["endpoints"]:
        method, _, path = each.partition(" ")
        assert method.lower() in described["paths"]["/iceberg" + path.replace("/{prefix}", "")]


def test_pyiceberg_reads_tables_through_the_catalog(served: HttpBroker) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.exceptions import NoSuchTableError

    catalog = load_catalog("ottla", type="rest", uri=f"{served.url}/iceberg")

    assert catalog.list_namespaces() == [("topics",)]
    assert ("topics", "eu_orders") in catalog.list_tables("topics")
    assert catalog.table_exists("topics.orders")
    table = catalog.load_table("topics.orders")
    rows = table.scan(row_filter="_offset > 1", selected_fields=("item",)).to_arrow().to_pylist()
    assert rows == [{"item": "item 2"}]
    with pytest.raises(NoSuchTableError):
        catalog.load_table("topics.none")
    with pytest.raises(Exception, match=r"ottla lake|support"):
        table.append(orders(9))
    assert catalog.list_views("topics") == []


def test_a_broker_without_tables_says_so(tmp_path: Path) -> None:
    with HttpBroker(tmp_path) as served:
        refused = served.client.get("/iceberg/v1/config")
    assert refused.status_code == 404
    assert "ottla lake run" in refused.json()["error"]["message"]


def test_the_catalog_is_not_imported_before_its_first_request() -> None:
    check = "import sys, ottla.http.app; assert 'ottla.http.iceberg' not in sys.modules"
    subprocess.run([sys.executable, "-c", check], check=True, timeout=60)
