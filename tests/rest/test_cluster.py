"""The broker, its configs, its folder and its clients, over REST."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.broker.raw_client import RawClient

from ottla.wire.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    import httpx

    from .serving import HttpBroker


def test_the_cluster_is_this_broker(served: HttpBroker, http: httpx.Client) -> None:
    cluster = http.get("/v1/cluster").json()
    [node] = cluster["brokers"]
    assert f"{node['host']}:{node['port']}" == served.servers
    assert cluster["cluster_id"] == http.get("/v1/broker").json()["cluster_id"]


def test_clients_are_listed_with_their_software(served: HttpBroker, http: httpx.Client) -> None:
    with RawClient(served.servers) as client:
        client.ask(ApiVersionsRequest(client_software_name="tester", client_software_version="1.2"))
        [listed] = http.get("/v1/clients").json()["clients"]
    assert (listed["host"], listed["software"], listed["is_busy"]) == ("127.0.0.1", "tester 1.2", False)


def test_the_log_dir_lists_partitions_and_free_space(http: httpx.Client, topic: str) -> None:
    http.post(f"/v1/topics/{topic}/messages", json={"messages": [{"value": "x" * 1000, "partition": 0}]})
    [folder] = http.get("/v1/log-dirs").json()["log_dirs"]
    sizes = {one["partition"]: one["size_bytes"] for one in folder["partitions"] if one["topic"] == topic}
    assert sizes[0] > 1000
    assert sizes[1] == 0
    assert folder["total_bytes"] >= folder["usable_bytes"] > 0


def test_broker_configs_are_shown_and_changed(http: httpx.Client) -> None:
    def setting() -> dict[str, object]:
        configs = http.get("/v1/configs").json()["configs"]
        [found] = [one for one in configs if one["name"] == "log.retention.ms"]
        return {key: found[key] for key in ("value", "source")}

    default = setting()
    changed = http.patch("/v1/configs", json={"configs": {"log.retention.ms": "1234567"}})
    assert changed.status_code == 200
    assert setting() == {"value": "1234567", "source": "DYNAMIC_BROKER_CONFIG"}
    http.patch("/v1/configs", json={"configs": {"log.retention.ms": None}})
    assert setting() == default
    refused = http.patch("/v1/configs", json={"configs": {"listeners": "x"}})
    assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_REQUEST")
