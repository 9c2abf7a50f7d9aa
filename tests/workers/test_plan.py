"""Settings of each worker, derived from the shared ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.cli.workers.plan import Configs, check, own_ports, shared_listeners, worker_configs
from ottla.cluster.builtin.config import WorkersConfig
from ottla.cluster.config import ClusterConfig
from ottla.core.errors import ConfigError
from ottla.dmqp.config import DmqpConfig
from ottla.http.config import HttpConfig
from ottla.http.queues.config import QueuesConfig
from ottla.net.config import NetConfig


def configs(settings: Settings | None = None, **workers: int) -> Configs:
    return Configs(
        settings or Settings(), HttpConfig(), QueuesConfig(), DmqpConfig(), WorkersConfig(**{"count": 2, **workers})
    )


TWO_LISTENERS = NetConfig(
    listeners=(
        "PLAINTEXT://127.0.0.1:9092",
        {"protocol": "SSL", "host": "::1", "port": 9192, "cert_file": "c.pem"},
    )
)
SSL_ALONE = NetConfig(listeners=({"protocol": "SSL", "host": "::", "port": 9092, "cert_file": "c.pem"},))


def test_workers_have_the_ports_after_the_shared_ones() -> None:
    assert own_ports(shared_listeners(configs()), WorkersConfig(count=3)) == [[9093], [9094], [9095]]
    two = shared_listeners(configs(Settings(net=TWO_LISTENERS)))
    assert own_ports(two, WorkersConfig(count=2)) == [[9193, 9194], [9195, 9196]]
    assert own_ports(two, WorkersConfig(count=2, first_port=1000)) == [[1000, 1001], [1002, 1003]]


def test_if_the_shared_port_is_0_so_are_those_of_workers() -> None:
    free = shared_listeners(configs(Settings(net=NetConfig(port=0))))
    assert own_ports(free, WorkersConfig(count=2)) == [[0], [0]]
    assert own_ports(free, WorkersConfig(count=2, first_port=1000)) == [[1000], [1001]]


def test_workers_leave_out_the_ports_of_http() -> None:
    listeners = shared_listeners(configs())
    assert own_ports(listeners, WorkersConfig(count=2), {8080}) == [[9093], [9094]]
    assert own_ports(listeners, WorkersConfig(count=2), {9093}) == [[9094], [9095]]
    assert own_ports(listeners, WorkersConfig(count=2), {9094, 9096}) == [[9097], [9098]]
    with pytest.raises(ConfigError, match=r"workers need the ports 9000 to 9001, and 9001 is for HTTP: set workers"):
        own_ports(listeners, WorkersConfig(count=2, first_port=9000), {9001})


def test_ports_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"65535 to 65536: set workers.first_port"):
        own_ports(shared_listeners(configs()), WorkersConfig(count=2, first_port=65535))


def test_a_worker_has_its_number_its_folder_and_its_port() -> None:
    settings = Settings(broker=BrokerConfig(data_dir=Path("d")), net=NetConfig(advertised="kafka.example:9092"))

    worker = worker_configs(configs(settings, count=3), 1, [9094])

    assert worker.settings.broker.node_id == 1
    assert worker.settings.broker.data_dir == Path("d/worker-1")
    assert worker.settings.broker.offsets_topic_partitions == 3
    assert worker.settings.cluster.internal_replication_factor == 1
    assert (worker.settings.net.port, worker.settings.net.advertised) == (9094, "kafka.example:9094")


def test_inter_worker_listeners_are_kept() -> None:
    check(configs(Settings(net=TWO_LISTENERS)))
    check(configs())


def test_a_worker_has_its_own_port_for_every_listener() -> None:
    worker = worker_configs(configs(Settings(net=TWO_LISTENERS)), 0, [9193, 9194])

    listeners = worker.settings.net.all_listeners(worker.settings.security)
    assert [(each.protocol, each.host, each.port) for each in listeners] == [
        ("PLAINTEXT", "127.0.0.1", 9193),
        ("SSL", "::1", 9194),
    ]
    assert listeners[1].cert_file == Path("c.pem")


def test_one_worker_serves_http_and_the_others_if_they_are_given_ports() -> None:
    assert [worker_configs(configs(), number, [1]).http.port for number in range(2)] == [8080, -1]
    given = configs(count=3, first_http_port=8081)
    assert [worker_configs(given, number, [1]).http.port for number in range(3)] == [8080, 8081, 8082]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (Settings(cluster=ClusterConfig(zookeeper="zk:2181")), "--zookeeper"),
        (Settings(broker=BrokerConfig(node_id=3)), "node_id"),
        (Settings(net=NetConfig(listeners=("SASL_PLAINTEXT://127.0.0.1:9092",))), "node_user and node_password"),
        (Settings(net=SSL_ALONE), "node_tls_ca"),
        (Settings(net=SSL_ALONE, cluster=ClusterConfig(node_tls_ca=Path("ca.pem"))), "advertised"),
    ],
)
def test_settings_incompatible_with_workers_are_refused(settings: Settings, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        check(configs(settings))
