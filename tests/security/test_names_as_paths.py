"""Path-like names over every protocol: nothing is read or written outside the data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from tests.broker.raw_client import RawClient
from tests.rest.serving import HttpBroker

from ottla.core.errors import ErrorCode
from ottla.queue import Queue, QueueError
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = [
    "..", ".", "../evil", "../../etc/passwd", "/etc/passwd", "a/../../evil", "a/b", "a\\..\\evil", "..\\evil",
    "evil\0", "\0", "%2e%2e%2fevil", "..%2fevil", "a\nb", "~root", "C:\\evil", "evil/", "‥/evil", "x" * 300,
]  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpBroker]:
    folder = tmp_path_factory.mktemp("outer")
    with HttpBroker(folder / "data") as served:
        yield served


@pytest.fixture(autouse=True)
def _nothing_outside(served: HttpBroker) -> Iterator[None]:
    outer = served.broker.config.data_dir.parent
    before = sorted(outer.iterdir())
    yield
    assert sorted(outer.iterdir()) == before
    inside = {path.name for path in (outer / "data").rglob("*")}
    assert not [name for name in inside if "evil" in name or "passwd" in name]


@pytest.mark.parametrize("name", NAMES)
def test_topics_through_kafka(served: HttpBroker, name: str) -> None:
    with RawClient(served.servers) as client:
        topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
        [created] = client.ask(CreateTopicsRequest(topics=(topic,))).topics
        assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        [seen] = client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=name),))).topics
        assert seen.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", NAMES)
def test_groups_through_kafka(served: HttpBroker, name: str) -> None:
    """A group may have any name: it is a key in a log, not a file."""
    with RawClient(served.servers) as client:
        protocol = JoinGroupRequestProtocol(name="range", metadata=b"")
        joined = client.ask(
            JoinGroupRequest(
                group_id=name, session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=(protocol,)
            )
        )
        assert joined.error_code in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.INVALID_GROUP_ID)
        wanted = OffsetFetchRequestGroup(group_id=name, topics=None)
        [found] = client.ask(OffsetFetchRequest(groups=(wanted,))).groups
        assert found.topics == ()


@pytest.mark.parametrize("name", NAMES)
def test_topics_and_consumers_through_rest(served: HttpBroker, name: str) -> None:
    http = served.client
    encoded = quote(name, safe="").replace(".", "%2E")
    message = {"messages": [{"value": "x"}]}
    for answer in (
        http.post("/v1/topics", json={"name": name}),
        http.post(f"/v1/topics/{encoded}/messages", json=message),
        http.get(f"/v1/topics/{encoded}"),
        http.get(f"/v1/topics/{encoded}/messages"),
        http.delete(f"/v1/topics/{encoded}"),
        http.get(f"/v1/consumers/{encoded}/messages", params={"topic": name}),
        http.get(f"/console/x/{encoded}"),
    ):
        assert 400 <= answer.status_code < 500, answer.request.url


@pytest.mark.parametrize("name", NAMES)
def test_queues_and_their_consumers_through_rest(served: HttpBroker, name: str) -> None:
    http = served.client
    encoded = quote(name, safe="").replace(".", "%2E")
    made = http.post("/api/v1/queues", json={"name": name})
    if made.status_code == 201:  # a name that is none of a path, such as ~root
        assert http.delete(f"/api/v1/queues/{encoded}").status_code == 200
        return
    assert made.status_code == 400
    for answer in (
        http.get(f"/api/v1/queues/{encoded}"),
        http.delete(f"/api/v1/queues/{encoded}"),
        http.post(f"/api/v1/queues/{encoded}/messages", content=b'"x"'),
        http.get(f"/api/v1/queues/jobs/consumers/{encoded}/messages"),
    ):
        assert 400 <= answer.status_code < 500, answer.request.url


@pytest.mark.parametrize("name", ["..", "../evil", "a/../../evil", "/tmp/evil-queue", "evil\0"])  # noqa: S108
def test_queues_as_a_library(tmp_path: Path, name: str) -> None:
    with pytest.raises(QueueError):
        Queue(tmp_path / "queues", name)
    assert not (tmp_path / "evil").exists()
