"""Settings of each worker, derived from the shared ones. Pure rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ottla.broker.topology import ANY_ADDRESS
from ottla.cli.lake_config import LakeConfig
from ottla.core.errors import ConfigError
from ottla.net.listener_config import parse_listeners

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from ottla.broker.settings import Settings
    from ottla.cluster.builtin.config import WorkersConfig
    from ottla.dmqp.config import DmqpConfig
    from ottla.http.config import HttpConfig
    from ottla.http.queues.config import QueuesConfig
    from ottla.http.registry_config import SchemaRegistryConfig
    from ottla.net.config import NetConfig
    from ottla.net.listener_config import ListenerConfig
    from ottla.net.security_config import SecurityConfig


class Configs(NamedTuple):
    """The configuration of a serving process."""

    settings: Settings
    http: HttpConfig
    queues: QueuesConfig
    dmqp: DmqpConfig
    workers: WorkersConfig
    registry: SchemaRegistryConfig | None = None
    lake: LakeConfig = LakeConfig()
    config_file: Path | None = None
    """As given on the command line; it has the tables [brokers.NAME]."""


class Logging(NamedTuple):
    level: str
    style: str


class WorkerPlan(Struct, frozen=True):
    """The plan that a supervisor sends to a worker; the numbers are inherited descriptors."""

    number: int
    configs: Configs
    logging: Logging
    catalog: int
    bound: Sequence[Sequence[int]]

    @property
    def descriptors(self) -> list[int]:
        return [self.catalog, *(each for listener in self.bound for each in listener)]


def check(configs: Configs) -> None:
    """Raises ConfigError if these settings cannot be combined with workers."""
    settings = configs.settings
    if settings.cluster.zookeeper:
        raise ConfigError("--workers cannot be used with --zookeeper: workers share a machine, cluster nodes do not")
    if settings.broker.node_id:
        raise ConfigError("workers are numbered from 0; leave out broker.node_id")
    _check_worker_listener(configs)


def _check_worker_listener(configs: Configs) -> None:
    """Workers talk to each other over one of the Kafka listeners, which must accept them."""
    cluster = configs.settings.cluster
    listeners = shared_listeners(configs)
    used = next((each for each in listeners if each.protocol == cluster.node_listener), listeners[0])
    if used.uses_sasl and not cluster.node_user:
        raise ConfigError(f"workers reach each other over {used.protocol}: set cluster.node_user and node_password")
    if used.uses_tls and cluster.node_tls_ca is None:
        raise ConfigError(f"workers reach each other over {used.protocol}: set cluster.node_tls_ca")
    if used.uses_tls and used.host in ANY_ADDRESS and not used.advertised:
        raise ConfigError(f"workers check each other's certificates: set where {used.protocol} is advertised")


def shared_listeners(configs: Configs) -> tuple[ListenerConfig, ...]:
    """The shared bootstrap ports, answered by any worker."""
    return configs.settings.net.all_listeners(configs.settings.security)


def http_ports(configs: Configs) -> frozenset[int]:
    """Ports that workers serve HTTP on; a free one is not known yet."""
    ports = {configs.http.port, *(_http_port(configs, number) for number in range(1, configs.workers.count))}
    return frozenset(port for port in ports if port > 0)


def own_ports(
    listeners: Sequence[ListenerConfig], workers: WorkersConfig, taken: Collection[int] = ()
) -> list[list[int]]:
    """For each worker, its port of each listener; 0 for a free one. `taken`: what they use for HTTP."""
    first, count = workers.first_port, len(listeners)
    needed = workers.count * count
    if not first and all(listener.port for listener in listeners):
        first = max(listener.port for listener in listeners) + 1
        while clashing := [port for port in taken if first <= port < first + needed]:
            first = max(clashing) + 1
    if first and (clashing := [port for port in taken if first <= port < first + needed]):
        raise ConfigError(
            f"workers need the ports {first} to {first + needed - 1}, and {clashing[0]} is for HTTP: "
            "set workers.first_port or http.port"
        )
    ports = [[first + worker * count + at if first else 0 for at in range(count)] for worker in range(workers.count)]
    if first and ports[-1][-1] > 65535:
        raise ConfigError(f"workers need the ports {first} to {ports[-1][-1]}: set workers.first_port")
    return ports


def worker_configs(configs: Configs, number: int, ports: Iterable[int]) -> Configs:
    """What this worker is configured with; the ports are its own, one for each listener."""
    settings, count = configs.settings, configs.workers.count
    broker = replace(
        settings.broker,
        node_id=number,
        data_dir=settings.broker.data_dir / f"worker-{number}",
        # So that groups, and below transactions and what share groups did, are spread over all of them.
        offsets_topic_partitions=max(settings.broker.offsets_topic_partitions, count),
    )
    partitions = max(settings.transactions.state_topic_partitions, count)
    transactions = replace(settings.transactions, state_topic_partitions=partitions)
    share = replace(settings.share, state_topic_partitions=max(settings.share.state_topic_partitions, count))
    # They share one disk, so another replica would not help.
    cluster = replace(settings.cluster, internal_replication_factor=1)
    net = _own_net(settings, list(ports))
    http = configs.http if number == 0 else replace(configs.http, port=_http_port(configs, number))
    own = settings._replace(
        broker=broker,
        cluster=cluster,
        net=net,
        transactions=transactions,
        share=share,
        security=_own_audit(settings, number),
    )
    return configs._replace(settings=own, http=http, registry=configs.registry if number == 0 else None)


def _own_audit(settings: Settings, number: int) -> SecurityConfig:
    """A separate file for each worker: each writes a hash chain."""
    path = settings.security.audit_file
    if path is None or (path.exists() and not path.is_file()):
        return settings.security
    return replace(settings.security, audit_file=path.with_name(f"{path.stem}-worker-{number}{path.suffix}"))


def _http_port(configs: Configs, number: int) -> int:
    first = configs.workers.first_http_port
    return first + number - 1 if first and configs.http.port >= 0 else -1


def _own_net(settings: Settings, ports: list[int]) -> NetConfig:
    net = settings.net
    if not net.listeners:
        return replace(net, port=ports[0], advertised=_with_port(net.advertised, ports[0]))
    own = [
        replace(each, port=port, advertised=_with_port(each.advertised, port))
        for each, port in zip(parse_listeners(net.listeners), ports, strict=True)
    ]
    return replace(net, listeners=tuple(_as_table(each) for each in own))


def _with_port(advertised: str, port: int) -> str:
    """The same host, where this worker's own port is reached as well."""
    return f"{advertised.rpartition(':')[0]}:{port}" if advertised else ""


def _as_table(listener: ListenerConfig) -> dict[str, Any]:
    known = {name: getattr(listener, name) for name in listener.__struct_fields__}
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in known.items()
        if value not in (None, "")
    }
