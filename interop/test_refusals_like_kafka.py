"""Authorization errors match those of Apache Kafka's StandardAuthorizer: every API, every version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import pytest

import ottla
from interop.kafka_broker import KafkaBroker
from interop.kafka_clients import Admin
from interop.kafka_wire import ask
from interop.raw_client import RawClient, wait_for_coordinator
from interop.refusals import CASES, PASSWORD, Case, Denied, acls_of_all, differences, is_in_version
from ottla.broker.config import BrokerConfig
from ottla.broker.security.users import credential
from ottla.broker.settings import Settings
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from interop.kafka_artifacts import KafkaArtifacts

TOPIC = "orders"
JUSTIFIED = {
    # The id is looked up for it, though the topic may not be read.
    "AlterShareGroupOffsets": ".responses[0].topic_id: ",
    # Kafka leaves out whom the result is about.
    "DescribeUserScramCredentials": ".results[0].user: ",
}
"""Where the answers differ; docs/kafka-apis.md says so."""


class Guarded(NamedTuple):
    """A broker with ACLs: with an open listener, and with one that requires a login."""

    open: str
    sasl: str
    topic_id: bytes

    def as_user(self, user: str) -> Denied:
        return Denied(self.sasl, user, self.topic_id)


def prepared(open_address: str, sasl: str) -> Guarded:
    Admin(open_address).create(TOPIC, 1)
    with RawClient(open_address) as client:
        wait_for_coordinator(client)
        begin_share_group(client)
    answer = ask(open_address, acls_of_all(), 3)
    assert {one.error_code for one in answer.results} == {0}
    [topic] = ask(open_address, MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 12).topics
    return Guarded(open_address, sasl, topic.topic_id)


def begin_share_group(client: RawClient) -> None:
    """A group without members, so that requests about it can fail for no other reason."""
    for epoch in (0, -1):
        topics = (TOPIC,) if epoch == 0 else None
        beat = ShareGroupHeartbeatRequest(
            group_id="readers", member_id="m", member_epoch=epoch, subscribed_topic_names=topics
        )
        assert client.ask(beat, 1).error_code == 0


@pytest.fixture(scope="module")
def theirs(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    users = " ".join(f'user_{case.user}="{PASSWORD}"' for case in CASES)
    login = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    properties = {
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "auto.create.topics.enable": "true",
    }
    folder = tmp_path_factory.mktemp("refusals")
    with KafkaBroker(kafka, folder, properties, listeners=("SASL_PLAINTEXT",)) as broker:
        yield prepared(broker.bootstrap, broker.addresses["SASL_PLAINTEXT"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("refusals-ottla")
    settings = Settings(
        broker=BrokerConfig(data_dir=folder),
        net=NetConfig(listeners=("PLAINTEXT://127.0.0.1:0", "SASL_PLAINTEXT://127.0.0.1:0")),
        security=SecurityConfig(acls=True, super_users=("User:ANONYMOUS",), mechanisms=("PLAIN",)),
    )
    with ottla.Broker(folder, settings) as broker:

        async def add_users() -> None:
            for case in CASES:
                broker.broker.catalog.put_credential(credential(case.user, "SCRAM-SHA-256", PASSWORD, 4096))

        broker.call(add_users())
        open_address, sasl = (str(port.address) for port in broker.broker.listener.ports)
        yield prepared(open_address, sasl)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_denied_request_gets_kafkas_response(theirs: Guarded, ours: Guarded, case: Case) -> None:
    request = case.sample.request
    found: list[str] = []
    compared = 0
    with theirs.as_user(case.user) as there, ours.as_user(case.user) as here:
        served = there.versions().get(request.API.key, range(0)), here.versions().get(request.API.key, range(0))
        for version in range(request.API.first, request.API.last + 1):
            if all(version in one for one in served) and is_in_version(request, version):
                answers = there.ask(request, version), here.ask(request, version)
                compared += 1
                found += differences(f"v{version}", *answers)
    assert compared
    assert [
        one for one in found if not re.sub(r"^v\d+", "", one).startswith(JUSTIFIED.get(request.API.name, "?"))
    ] == []
