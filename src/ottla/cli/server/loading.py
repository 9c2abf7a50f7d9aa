"""The settings of a broker and of its protocol servers: file, environment and command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.config import BrokerConfig
from ottla.broker.settings import Settings
from ottla.broker.tracing_config import TracingConfig
from ottla.cli.lake_config import LakeConfig
from ottla.cli.settings import load_settings
from ottla.cli.workers.plan import Configs
from ottla.cluster.builtin.config import WorkersConfig
from ottla.cluster.config import ClusterConfig
from ottla.cluster.replication.config import ReplicationConfig
from ottla.core.keys import EncryptionConfig
from ottla.dmqp.config import DmqpConfig
from ottla.groups.config import GroupConfig
from ottla.http.config import HttpConfig
from ottla.http.queues.config import QueuesConfig
from ottla.http.registry_config import SchemaRegistryConfig
from ottla.net.config import NetConfig
from ottla.net.security_config import SecurityConfig
from ottla.share.config import ShareConfig
from ottla.storage.config import LogConfig
from ottla.transactions.config import TransactionConfig

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ottla.core.config import Flag


def broker_settings(config_file: Path | None, assignments: Sequence[str], flags: dict[str, Flag]) -> Configs:
    loaded = load_settings(config_file, assignments, flags)
    settings = Settings(
        broker=loaded.section(BrokerConfig),
        net=loaded.section(NetConfig),
        log=loaded.section(LogConfig),
        groups=loaded.section(GroupConfig),
        transactions=loaded.section(TransactionConfig),
        share=loaded.section(ShareConfig),
        encryption=loaded.section(EncryptionConfig),
        security=loaded.section(SecurityConfig),
        tracing=loaded.section(TracingConfig),
        cluster=loaded.section(ClusterConfig),
        replication=loaded.section(ReplicationConfig),
    )
    return Configs(
        settings,
        loaded.section(HttpConfig),
        loaded.section(QueuesConfig),
        loaded.section(DmqpConfig),
        loaded.section(WorkersConfig),
        loaded.section(SchemaRegistryConfig),
        loaded.section(LakeConfig),
        config_file,
    )
