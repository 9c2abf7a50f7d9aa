"""Kafka's tools and Java client with a secured Ottla: every mechanism, ACLs, users and quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.security.securing import PASSWORDS, Secured, secured

from interop.kafka_tools import ToolRun, run_tool

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from interop.kafka_artifacts import KafkaArtifacts

TOOLS = "org.apache.kafka.tools"
ACLS = f"{TOOLS}.AclCommand"
CONFIGS = "kafka.admin.ConfigCommand"
PRODUCER = f"{TOOLS}.ConsoleProducer"
CONSUMER = f"{TOOLS}.consumer.ConsoleConsumer"
MODULES = "org.apache.kafka.common.security"
LOGINS = {"PLAIN": "plain.PlainLoginModule", "SCRAM-SHA-256": "scram.ScramLoginModule"}
LOGINS["SCRAM-SHA-512"] = LOGINS["SCRAM-SHA-256"]
LOGINS["OAUTHBEARER"] = "oauthbearer.OAuthBearerLoginModule"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("guarded"), acls=True, super_users=("User:admin",)) as broker:
        yield broker


def properties(broker: Secured, folder: Path, user: str, mechanism: str = "SCRAM-SHA-512") -> str:
    file = folder / f"{user}-{mechanism}.properties"
    file.write_text(
        "security.protocol=SASL_SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={broker.authority.cert}\n"
        f"sasl.mechanism={mechanism}\n" + _login(broker, folder, user, mechanism)
    )
    return str(file)


def _login(broker: Secured, folder: Path, user: str, mechanism: str) -> str:
    module = f"sasl.jaas.config={MODULES}.{LOGINS[mechanism]} required"
    if mechanism != "OAUTHBEARER":
        return f'{module} username="{user}" password="{PASSWORDS[user]}";\n'
    token = _token_file(folder, user)
    token.write_text(broker.issuer.token(user))
    return (
        f"{module};\n"
        f"sasl.login.callback.handler.class={MODULES}.oauthbearer.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={token.as_uri()}\n"
    )


def _token_file(folder: Path, user: str) -> Path:
    return folder / f"{user}.jwt"


class Tools:
    def __init__(self, kafka: KafkaArtifacts, broker: Secured, folder: Path) -> None:
        self._kafka = kafka
        self._broker = broker
        self._folder = folder

    def run(
        self, main_class: str, *arguments: str, user: str = "admin", mechanism: str = "SCRAM-SHA-512", given: str = ""
    ) -> ToolRun:
        config = properties(self._broker, self._folder, user, mechanism)
        server = ("--bootstrap-server", self._broker.address("SASL_SSL"), "--command-config", config)
        # Kafka reads a token from a file only where it was told so at its start.
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={_token_file(self._folder, user).as_uri()}"
        return run_tool(self._kafka, main_class, *server, *arguments, given=given, java_options=[allowed])


@pytest.fixture
def tools(kafka: KafkaArtifacts, guarded: Secured, tmp_path: Path) -> Tools:
    return Tools(kafka, guarded, tmp_path)


@pytest.mark.parametrize("mechanism", LOGINS)
def test_java_logs_in_over_tls_writes_and_reads(tools: Tools, mechanism: str) -> None:
    topic = f"java-{mechanism}"
    sent = tools.run(PRODUCER, "--topic", topic, mechanism=mechanism, given="hello\n")
    assert sent.exit_code == 0, sent
    read = tools.run(
        CONSUMER, "--topic", topic, "--from-beginning", "--max-messages", "1", "--timeout-ms", "30000",
        mechanism=mechanism,
    )  # fmt: skip
    assert read.stdout.splitlines() == ["hello"], read


def test_kafka_acls_adds_lists_and_removes(tools: Tools) -> None:
    rule = ("--allow-principal", "User:ann", "--operation", "Read", "--topic", "of-acls")
    added = tools.run(ACLS, "--add", *rule)
    assert added.exit_code == 0, added
    listed = tools.run(ACLS, "--list", "--topic", "of-acls")
    assert "principal=User:ann, host=*, operation=READ, permissionType=ALLOW" in listed.stdout
    removed = tools.run(ACLS, "--remove", "--force", *rule)
    assert removed.exit_code == 0, removed
    assert "User:ann" not in tools.run(ACLS, "--list", "--topic", "of-acls").stdout


def test_kafka_configs_creates_users_and_quotas(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    entity = ("--entity-type", "users", "--entity-name", "carl")
    made = tools.run(CONFIGS, "--alter", *entity, "--add-config", "SCRAM-SHA-512=[iterations=8192,password=carls]")
    assert made.exit_code == 0, made
    monkeypatch.setitem(PASSWORDS, "carl", "carls")
    assert "ClusterAuthorizationException" in _said(tools.run(ACLS, "--list", user="carl"))
    limited = tools.run(CONFIGS, "--alter", *entity, "--add-config", "producer_byte_rate=1000000")
    assert limited.exit_code == 0, limited
    described = tools.run(CONFIGS, "--describe", *entity)
    assert "producer_byte_rate=1000000.0" in described.stdout
    assert "SCRAM-SHA-512=iterations=8192" in described.stdout


def test_java_gets_authorization_errors(tools: Tools) -> None:
    refused = tools.run(PRODUCER, "--topic", "of-nobody", user="ann", given="hello\n")
    assert "TopicAuthorizationException" in _said(refused) or "TOPIC_AUTHORIZATION_FAILED" in _said(refused)


def test_java_gets_an_authentication_error(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PASSWORDS, "ann", "wrong")
    assert "SaslAuthenticationException" in _said(tools.run(ACLS, "--list", user="ann"))


def _said(run: ToolRun) -> str:
    return run.stdout + run.stderr
