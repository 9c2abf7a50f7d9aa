"""Opens the audit log with its configured targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.security.audit import Audit
from ottla.broker.security.audit_chain import Chain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ottla.broker.broker import Broker
    from ottla.broker.security.audit import Target

AUDIT_FILE: Final = "audit.jsonl"


def open_audit(broker: Broker) -> Audit:
    config = broker.settings.security
    targets: list[Target] = []
    chain = Chain()
    stop: Callable[[], Awaitable[None]] | None = None
    if "file" in config.audit_targets:
        from ottla.broker.security.audit_file import AuditFile, Rotation
        from ottla.broker.security.audit_writer import AuditWriter

        rotation = Rotation(config.audit_max_bytes, config.audit_max_age_ms / 1000, config.audit_files_kept)
        file = AuditFile(config.audit_file or broker.config.data_dir / AUDIT_FILE, rotation)
        targets.append(AuditWriter(file))
        chain = file.chain
    if "syslog" in config.audit_targets:
        from ottla.broker.security.audit_syslog import AuditSyslog

        targets.append(AuditSyslog(config.audit_syslog))
    if "topic" in config.audit_targets:
        from ottla.broker.security.audit_topic import AuditTopic

        topic = AuditTopic(broker)
        targets.append(topic)
        stop = topic.stop
    return Audit(targets, chain, broker.config.node_id, stop)
