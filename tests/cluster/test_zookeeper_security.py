"""ZooKeeper with passwords and TLS: other users can neither read nor change the cluster's nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.client.certificates import make_certificates

from ottla.cluster.config import ClusterConfig
from ottla.cluster.connecting import connect
from ottla.cluster.server import ZooKeeperServer, free_port
from ottla.core.errors import ConfigError

from .conftest import why_there_is_no_zookeeper

if TYPE_CHECKING:
    from pathlib import Path

JAAS = """Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required user_ottla="secret" user_mallory="guess";
};
"""
SASL = "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
TLS = """secureClientPort={port}
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location={keys}
ssl.keyStore.type=PEM
ssl.trustStore.location={authority}
ssl.trustStore.type=PEM
ssl.clientAuth=need
"""


def config(zookeeper: str, **more: object) -> ClusterConfig:
    return ClusterConfig(zookeeper=zookeeper, connect_timeout_ms=3000, **more)  # type: ignore[arg-type]


def test_with_credentials_other_users_cannot_read_the_clusters_nodes(zookeeper: str) -> None:
    ours = connect(config(zookeeper, zookeeper_user="ottla", zookeeper_password="secret"))
    ours.catalog.create_topic("t", 1)
    ours.close()

    again = connect(config(zookeeper, zookeeper_user="ottla", zookeeper_password="secret"))
    assert list(again.catalog.view.topics) == ["t"]
    again.close()
    for stranger in ({}, {"zookeeper_user": "ottla", "zookeeper_password": "guess"}):
        with pytest.raises(ConfigError, match="ZooKeeper"):
            connect(config(zookeeper, **stranger))


def test_a_user_may_log_in_with_sasl(tmp_path: Path) -> None:
    pytest.importorskip("puresasl")
    if reason := why_there_is_no_zookeeper():
        pytest.skip(reason)
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(JAAS)
    server = ZooKeeperServer(tmp_path / "zookeeper", free_port(), SASL, (f"-Djava.security.auth.login.config={jaas}",))
    server.start()
    try:
        who = {"zookeeper_sasl": True, "zookeeper_user": "ottla", "zookeeper_password": "secret"}
        ours = connect(config(server.address, **who))
        ours.catalog.create_topic("t", 1)
        ours.close()
        for stranger in ({}, who | {"zookeeper_user": "mallory", "zookeeper_password": "guess"}):
            with pytest.raises(ConfigError, match="ZooKeeper"):
                connect(config(server.address, **stranger))
    finally:
        server.stop()


def test_the_connection_may_use_mutual_tls(tmp_path: Path) -> None:
    if reason := why_there_is_no_zookeeper():
        pytest.skip(reason)
    certificates = make_certificates(tmp_path)
    keys = tmp_path / "server-with-key.pem"
    keys.write_text(certificates.key_of(certificates.broker).read_text() + certificates.broker.read_text())
    port = free_port()
    settings = TLS.format(port=port, keys=keys, authority=certificates.authority)
    server = ZooKeeperServer(tmp_path / "zookeeper", free_port(), settings)
    server.start()
    try:
        who = {
            "zookeeper_tls_ca": certificates.authority,
            "zookeeper_tls_cert": certificates.client,
            "zookeeper_tls_key": certificates.key_of(certificates.client),
        }
        ours = connect(config(f"127.0.0.1:{port}", **who))
        ours.catalog.create_topic("t", 1)
        assert list(ours.catalog.view.topics) == ["t"]
        ours.close()
        with pytest.raises(ConfigError, match="ZooKeeper"):
            connect(config(f"127.0.0.1:{port}", zookeeper_tls_ca=certificates.authority))
    finally:
        server.stop()
