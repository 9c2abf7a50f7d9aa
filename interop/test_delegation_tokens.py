"""Delegation tokens: the same requests to Apache Kafka and to Ottla; Java's tool and client at Ottla, ours at Kafka."""

from __future__ import annotations

import base64
import re
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import ottla
from interop.kafka_broker import KafkaBroker
from interop.kafka_tools import run_tool
from interop.refusals import PASSWORD, Denied, differences
from ottla.broker.config import BrokerConfig
from ottla.broker.security.users import credential
from ottla.broker.settings import Settings
from ottla.client.admin.acls import Acl, AclFilter
from ottla.client.errors import BrokerError
from ottla.client.security import Security
from ottla.core.security import AclOperation, ResourceType
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.wire.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from ottla.wire.messages.describe_delegation_token import DescribeDelegationTokenOwner, DescribeDelegationTokenRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from interop.kafka_artifacts import KafkaArtifacts
    from ottla.wire.declare import Request

USERS = ("ann", "bob", "eve")
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MODULES = "org.apache.kafka.common.security"
SECRET = "a secret of all brokers"  # noqa: S105 - of brokers that live as long as a test
MINUTE_MS = 60_000
DAY_MS = 24 * 60 * MINUTE_MS
NO_TOPIC = b"\0" * 16


class Guarded(NamedTuple):
    open: str
    sasl: str

    def as_user(self, user: str) -> Denied:
        return Denied(self.sasl, user, NO_TOPIC)


@pytest.fixture(scope="module")
def theirs(kafka: KafkaArtifacts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
    properties = {
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {users};",
        "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": SECRET,
    }
    folder = tmp_path_factory.mktemp("tokens-kafka")
    with KafkaBroker(kafka, folder, properties, listeners=("SASL_PLAINTEXT",)) as broker:
        yield Guarded(broker.bootstrap, broker.addresses["SASL_PLAINTEXT"])


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("tokens-ottla")
    security = SecurityConfig(
        acls=True, super_users=("User:ANONYMOUS",), mechanisms=MECHANISMS, delegation_token_secret=SECRET
    )
    net = NetConfig(listeners=("PLAINTEXT://127.0.0.1:0", "SASL_PLAINTEXT://127.0.0.1:0"))
    settings = Settings(broker=BrokerConfig(data_dir=folder), net=net, security=security)
    with ottla.Broker(folder, settings) as broker:

        async def add_users() -> None:
            for user in USERS:
                broker.broker.catalog.put_credential(credential(user, "SCRAM-SHA-256", PASSWORD, 4096))

        broker.call(add_users())
        yield Guarded(*(str(port.address) for port in broker.broker.listener.ports))


def creation(*renewers: str, lifetime_ms: int = -1, owner: str = "") -> CreateDelegationTokenRequest:
    made = (
        CreatableRenewers(principal_type=each.split(":")[0], principal_name=each.split(":")[1]) for each in renewers
    )
    kind, _, name = owner.partition(":")
    return CreateDelegationTokenRequest(
        renewers=tuple(made), max_lifetime_ms=lifetime_ms, owner_principal_type=kind, owner_principal_name=name
    )


def description(*owners: str) -> DescribeDelegationTokenRequest:
    parts = (owner.split(":") for owner in owners)
    asked = tuple(DescribeDelegationTokenOwner(principal_type=kind, principal_name=name) for kind, name in parts)
    return DescribeDelegationTokenRequest(owners=asked)


class Play:
    """Requests of several users to one broker; times become distances, tokens become their numbers."""

    def __init__(self, broker: Guarded) -> None:
        self._broker = broker
        self._tokens: list[tuple[str, bytes]] = []
        self._expected: dict[str, int | None] = {}
        self.answers: list[object] = []

    def ask(self, user: str, request: Request, version: int | None = None) -> None:
        answer = self._asked(user, request, request.API.last if version is None else version)
        if answer.get("hmac"):
            self._tokens.append((answer["token_id"], answer["hmac"]))
            self._expected[answer["token_id"]] = answer["expiry_timestamp_ms"]
        elif (
            isinstance(request, RenewDelegationTokenRequest | ExpireDelegationTokenRequest) and not answer["error_code"]
        ):
            [token_id] = [token_id for token_id, hmac in self._tokens if hmac == request.hmac]
            is_gone = getattr(request, "expiry_time_period_ms", 0) < 0
            self._expected[token_id] = None if is_gone else answer["expiry_timestamp_ms"]
        self._settle()
        self.answers.append(self._plain(answer))

    def hmac(self, number: int) -> bytes:
        return self._tokens[number][1]

    def _asked(self, user: str, request: Request, version: int) -> dict[str, Any]:
        with self._broker.as_user(user) as client:
            answer = client.ask(request, version)
        assert isinstance(answer, dict), answer
        return answer

    def _settle(self) -> None:
        """Kafka's broker learns of a change some time after its controller has answered."""
        deadline = time.monotonic() + 20
        wanted = {token_id: at for token_id, at in self._expected.items() if at is not None}
        while True:
            seen = {}
            for owner in ("ann", "bob"):
                for each in self._asked(owner, description(f"User:{owner}"), 3)["tokens"]:
                    seen[each["token_id"]] = each["expiry_timestamp"]
            if {token_id: at for token_id, at in seen.items() if token_id in self._expected} == wanted:
                return
            assert time.monotonic() < deadline, (seen, wanted)

    def _plain(self, value: object) -> object:
        if isinstance(value, list):
            return sorted((self._plain(each) for each in value if self._is_ours(each)), key=str)
        if not isinstance(value, dict):
            return value
        known = dict(self._tokens)
        numbers = {token_id: number for number, (token_id, _) in enumerate(self._tokens)}
        issued = value.get("issue_timestamp_ms", value.get("issue_timestamp", 0))
        plain: dict[str, object] = {}
        for name, each in value.items():
            if name == "token_id" and each:
                plain[name] = numbers[each]
            elif name == "hmac" and each:
                plain[name] = each == known[value["token_id"]]
            elif "timestamp" in name and each > 0:
                plain[name] = _rounded(each - issued) if issued > 0 else "later"
            else:
                plain[name] = self._plain(each)
        return plain

    def _is_ours(self, item: object) -> bool:
        """Whether it is not a token of an earlier run with the same broker."""
        return not (isinstance(item, dict) and "token_id" in item) or item["token_id"] in dict(self._tokens)


def _rounded(distance_ms: int) -> int:
    """Renewals and expiries count from when they are asked for, which is a little after the token was issued."""
    return round(distance_ms / MINUTE_MS)


def play(broker: Guarded) -> list[object]:
    with ottla.Admin(broker.open) as admin:
        admin.delete_acls(AclFilter(principal="User:eve"))
    stage = Play(broker)
    for version in (1, 2, 3):
        stage.ask("ann", creation("User:bob"), version)
        stage.ask("ann", creation("Group:sales"), version)
    stage.ask("ann", creation(lifetime_ms=MINUTE_MS))
    stage.ask("ann", creation(lifetime_ms=30 * DAY_MS))
    stage.ask("eve", creation(owner="User:ann"))
    for user in USERS:
        for version in (1, 2, 3):
            stage.ask(user, DescribeDelegationTokenRequest(owners=None), version)
        stage.ask(user, description())
        stage.ask(user, description("User:ann"))
        stage.ask(user, description("User:bob"))
        stage.ask(user, description("User:nobody"))
    for user in ("bob", "eve"):
        for version in (1, 2):
            stage.ask(user, RenewDelegationTokenRequest(hmac=stage.hmac(0), renew_period_ms=-1), version)
            stage.ask(user, RenewDelegationTokenRequest(hmac=b"unknown", renew_period_ms=-1), version)
            stage.ask(user, ExpireDelegationTokenRequest(hmac=b"unknown", expiry_time_period_ms=-1), version)
    stage.ask("eve", ExpireDelegationTokenRequest(hmac=stage.hmac(0), expiry_time_period_ms=-1))
    stage.ask("bob", ExpireDelegationTokenRequest(hmac=stage.hmac(0), expiry_time_period_ms=MINUTE_MS))
    stage.ask("bob", ExpireDelegationTokenRequest(hmac=stage.hmac(0), expiry_time_period_ms=-1))
    stage.ask("bob", ExpireDelegationTokenRequest(hmac=stage.hmac(0), expiry_time_period_ms=-1))
    stage.ask("ann", ExpireDelegationTokenRequest(hmac=stage.hmac(1), expiry_time_period_ms=0))
    grant(broker, Acl("User:eve", AclOperation.CREATE_TOKENS, ResourceType.USER, "User:bob"))
    stage.ask("eve", creation(owner="User:bob"))
    number = len(stage._tokens) - 1  # noqa: SLF001 - of the same file
    stage.ask("eve", RenewDelegationTokenRequest(hmac=stage.hmac(number), renew_period_ms=-1))
    stage.ask("eve", description("User:bob"))
    grant(broker, Acl("User:eve", AclOperation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob"))
    stage.ask("eve", description("User:bob"))
    stage.ask("bob", creation())
    stage.ask("eve", description("User:bob"))
    return stage.answers


def grant(broker: Guarded, acl: Acl) -> None:
    with ottla.Admin(broker.open) as admin:
        assert set(admin.create_acls([acl]).values()) == {None}
        deadline = time.monotonic() + 20
        while acl not in admin.list_acls():
            assert time.monotonic() < deadline


def test_both_brokers_answer_the_same(theirs: Guarded, ours: Guarded) -> None:
    there, here = play(theirs), play(ours)
    assert [
        difference
        for number, (one, other) in enumerate(zip(there, here, strict=True))
        for difference in differences(f"answer {number}", one, other)
    ] == []


def test_requests_without_authentication_are_refused_alike(theirs: Guarded, ours: Guarded) -> None:
    codes = []
    for broker in (theirs, ours):
        with ottla.Admin(broker.open) as admin:
            for call in (admin.create_token, admin.list_tokens, lambda a=admin: a.renew_token(b"x")):
                with pytest.raises(BrokerError) as caught:
                    call()
                codes.append(caught.value.code)
    assert codes[:3] == codes[3:] == [64, 64, 64]


def properties(folder: Path, login: str, mechanism: str = "PLAIN") -> str:
    file = folder / "client.properties"
    lines = ("security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}", f"sasl.jaas.config={MODULES}.{login};")
    file.write_text("\n".join(lines))
    return str(file)


def test_kafkas_tool_and_java_client_use_tokens_of_ottla(kafka: KafkaArtifacts, ours: Guarded, tmp_path: Path) -> None:
    ann = properties(tmp_path, f'plain.PlainLoginModule required username="ann" password="{PASSWORD}"')

    def tool(*arguments: str) -> str:
        given = ("--bootstrap-server", ours.sasl, "--command-config", ann, *arguments)
        done = run_tool(kafka, "org.apache.kafka.tools.DelegationTokenCommand", *given)
        assert done.exit_code == 0, done
        return done.stdout

    made = tool("--create", "--max-life-time-period", str(DAY_MS), "--renewer-principal", "User:bob")
    token_id, hmac = re.findall(r"^(\S{22})\s+(\S+==)\s+User:ann\s+User:ann\s+\[User:bob\]", made, re.MULTILINE)[0]
    assert token_id in tool("--describe", "--owner-principal", "User:ann")
    tool("--renew", "--renew-time-period", str(MINUTE_MS), "--hmac", hmac)

    with ottla.Admin(ours.open) as admin:
        admin.create_topic("for-ann")
        admin.create_acls([Acl("User:ann", AclOperation.DESCRIBE, ResourceType.TOPIC, "for-ann")])
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        login = f'scram.ScramLoginModule required username="{token_id}" password="{hmac}" tokenauth="true"'
        given = ("--bootstrap-server", ours.sasl, "--command-config", properties(tmp_path, login, mechanism), "--list")
        done = run_tool(kafka, "org.apache.kafka.tools.TopicCommand", *given)
        assert (done.exit_code, done.stdout.split()) == (0, ["for-ann"]), done

    ann = properties(tmp_path, f'plain.PlainLoginModule required username="ann" password="{PASSWORD}"')
    tool("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert token_id not in tool("--describe", "--owner-principal", "User:ann")


def test_our_client_logs_in_to_kafka_with_a_token(theirs: Guarded) -> None:
    plain = Security(mechanism="PLAIN", username="ann", password=PASSWORD)
    with ottla.Admin(theirs.sasl, security=plain) as ann:
        token = ann.create_token()
        deadline = time.monotonic() + 20
        while token.id not in {each.id for each in ann.list_tokens()}:
            assert time.monotonic() < deadline
    assert base64.b64decode(token.secret) == token.hmac
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        login: dict[str, Any] = {"mechanism": mechanism, "username": token.id, "password": token.secret}
        with ottla.Admin(theirs.sasl, security=Security(**login, is_delegation_token=True)) as as_ann:
            assert as_ann.describe_cluster().brokers
