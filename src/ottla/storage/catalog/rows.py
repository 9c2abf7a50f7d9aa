"""Conversion between entries and rows."""

from __future__ import annotations

import uuid
from collections import defaultdict
from typing import TYPE_CHECKING, assert_never

import msgspec

from ottla.core.ids import TopicId
from ottla.storage.catalog.database import transaction
from ottla.storage.catalog.entries import (
    Acl,
    AclOperation,
    AclPermission,
    ConfigResource,
    ConfigScope,
    DelegationToken,
    Entry,
    PatternType,
    Quota,
    QuotaEntity,
    QuotaEntityType,
    ResourceConfigs,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    Topic,
)
from ottla.storage.catalog.view import CatalogView, Change

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from ottla.storage.catalog.secrets import Secrets


def read_view(db: sqlite3.Connection, secrets: Secrets) -> CatalogView:
    return CatalogView().after([Change(None, entry) for entry in _read_entries(db, secrets)])


def reseal(db: sqlite3.Connection, secrets: Secrets, view: CatalogView) -> None:
    """Re-encrypt the secrets that are not encrypted with the newest key."""
    rows = db.execute("SELECT user, mechanism, stored_key, server_key FROM scram_credential").fetchall()
    outdated = [(user, mechanism) for user, mechanism, *keys in rows if any(map(secrets.is_outdated, keys))]
    if outdated:
        with transaction(db):
            for user, mechanism in outdated:
                credential = view.credentials[user, ScramMechanism(mechanism)]
                write(db, Change(credential, credential), secrets)
        # The write-ahead log must not contain the old secrets either.
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def write(db: sqlite3.Connection, change: Change, secrets: Secrets) -> None:
    """Write changes. A changed entry is deleted and inserted again: entries are small, and there is one way to store
    each.
    """
    if change.before is not None:
        _erase(db, change.before)
    if change.after is not None:
        _insert(db, change.after, secrets)


def _insert(db: sqlite3.Connection, entry: Entry, secrets: Secrets) -> None:
    match entry:
        case Topic():
            _insert_topic(db, entry)
        case ScramCredential():
            _insert_credential(db, entry, secrets)
        case DelegationToken():
            _insert_token(db, entry)
        case Acl():
            _insert_acl(db, entry)
        case Quota():
            _insert_quota(db, entry)
        case ResourceConfigs():
            _insert_resource_configs(db, entry)
        case _:
            assert_never(entry)


def _erase(db: sqlite3.Connection, entry: Entry) -> None:
    match entry:
        case Topic():
            _erase_topic(db, entry)
        case ScramCredential():
            _erase_credential(db, entry)
        case DelegationToken():
            db.execute("DELETE FROM delegation_token WHERE id = ?", (entry.id,))
        case Acl():
            _erase_acl(db, entry)
        case Quota():
            _erase_quota(db, entry)
        case ResourceConfigs():
            _erase_resource_configs(db, entry)
        case _:
            assert_never(entry)


def _read_entries(db: sqlite3.Connection, secrets: Secrets) -> Iterator[Entry]:
    yield from _read_topics(db)
    yield from _read_credentials(db, secrets)
    yield from _read_tokens(db)
    yield from _read_acls(db)
    yield from _read_quotas(db)
    yield from _read_resource_configs(db)


def _insert_topic(db: sqlite3.Connection, topic: Topic) -> None:
    db.execute(
        "INSERT INTO topic (id, name, partitions, is_internal) VALUES (?, ?, ?, ?)",
        (topic.id.raw, topic.name, topic.partitions, topic.is_internal),
    )
    db.executemany(
        "INSERT INTO topic_config (topic_id, key, value) VALUES (?, ?, ?)",
        [(topic.id.raw, key, value) for key, value in topic.configs.items()],
    )


def _erase_topic(db: sqlite3.Connection, topic: Topic) -> None:
    db.execute("DELETE FROM topic WHERE id = ?", (topic.id.raw,))


def _read_topics(db: sqlite3.Connection) -> Iterator[Topic]:
    configs: dict[bytes, dict[str, str]] = defaultdict(dict)
    for topic_id, key, value in db.execute("SELECT topic_id, key, value FROM topic_config"):
        configs[topic_id][key] = value
    for topic_id, name, partitions, is_internal in db.execute("SELECT id, name, partitions, is_internal FROM topic"):
        identity = TopicId(uuid.UUID(bytes=topic_id))
        yield Topic(name, identity, partitions, configs.get(topic_id, {}), bool(is_internal))


def _insert_credential(db: sqlite3.Connection, credential: ScramCredential, secrets: Secrets) -> None:
    user, mechanism = credential.user, credential.mechanism
    db.execute(
        "INSERT INTO scram_credential (user, mechanism, salt, iterations, stored_key, server_key, expires_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (
            user,
            mechanism,
            credential.salt,
            credential.iterations,
            secrets.seal(credential.stored_key, _place(user, mechanism, "stored_key")),
            secrets.seal(credential.server_key, _place(user, mechanism, "server_key")),
            credential.expires_ms,
        ),
    )


def _erase_credential(db: sqlite3.Connection, credential: ScramCredential) -> None:
    db.execute(
        "DELETE FROM scram_credential WHERE user = ? AND mechanism = ?",
        (credential.user, credential.mechanism),
    )


def _read_credentials(db: sqlite3.Connection, secrets: Secrets) -> Iterator[ScramCredential]:
    for user, mechanism, salt, iterations, stored_key, server_key, expires_ms in db.execute(
        "SELECT user, mechanism, salt, iterations, stored_key, server_key, expires_ms FROM scram_credential"
    ):
        yield ScramCredential(
            user,
            ScramMechanism(mechanism),
            salt,
            iterations,
            secrets.open(stored_key, _place(user, mechanism, "stored_key")),
            secrets.open(server_key, _place(user, mechanism, "server_key")),
            None if expires_ms is None else int(expires_ms),
        )


def _place(user: str, mechanism: int, column: str) -> bytes:
    return f"scram_credential/{mechanism}/{column}/{user}".encode()


def _insert_token(db: sqlite3.Connection, token: DelegationToken) -> None:
    import json  # rarely needed

    times = token.issued_ms, token.expires_ms, token.max_ms
    db.execute(
        "INSERT INTO delegation_token (id, owner, requester, renewers, issued_ms, expires_ms, max_ms)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (token.id, token.owner, token.requester, json.dumps(token.renewers), *times),
    )


def _read_tokens(db: sqlite3.Connection) -> Iterator[DelegationToken]:
    for token_id, owner, requester, renewers, *times in db.execute(
        "SELECT id, owner, requester, renewers, issued_ms, expires_ms, max_ms FROM delegation_token"
    ):
        yield DelegationToken(token_id, owner, requester, tuple(msgspec.json.decode(renewers)), *times)


def _acl_row(acl: Acl) -> tuple[int, str, int, str, str, int, int]:
    return (
        acl.resource_type,
        acl.resource_name,
        acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission,
    )


def _insert_acl(db: sqlite3.Connection, acl: Acl) -> None:
    db.execute(
        "INSERT INTO acl"
        " (resource_type, resource_name, pattern_type, principal, host, operation, permission)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        _acl_row(acl),
    )


def _erase_acl(db: sqlite3.Connection, acl: Acl) -> None:
    db.execute(
        "DELETE FROM acl WHERE resource_type = ? AND resource_name = ? AND pattern_type = ?"
        " AND principal = ? AND host = ? AND operation = ? AND permission = ?",
        _acl_row(acl),
    )


def _read_acls(db: sqlite3.Connection) -> Iterator[Acl]:
    for resource_type, resource_name, pattern_type, principal, host, operation, permission in db.execute(
        "SELECT resource_type, resource_name, pattern_type, principal, host, operation, permission FROM acl"
    ):
        yield Acl(
            ResourceType(resource_type),
            resource_name,
            PatternType(pattern_type),
            principal,
            host,
            AclOperation(operation),
            AclPermission(permission),
        )


def _entity_text(entity: QuotaEntity) -> str:
    import json  # rarely needed

    return json.dumps(dict(entity.parts), sort_keys=True, ensure_ascii=False)


def _insert_quota(db: sqlite3.Connection, quota: Quota) -> None:
    entity = _entity_text(quota.entity)
    db.executemany(
        "INSERT INTO quota (entity, key, value) VALUES (?, ?, ?)",
        [(entity, key, limit) for key, limit in quota.limits.items()],
    )


def _erase_quota(db: sqlite3.Connection, quota: Quota) -> None:
    db.execute("DELETE FROM quota WHERE entity = ?", (_entity_text(quota.entity),))


def _read_quotas(db: sqlite3.Connection) -> Iterator[Quota]:
    limits: dict[str, dict[str, float]] = defaultdict(dict)
    for entity, key, limit in db.execute("SELECT entity, key, value FROM quota"):
        limits[entity][key] = limit
    for entity, values in limits.items():
        parts = {QuotaEntityType(kind): name for kind, name in msgspec.json.decode(entity).items()}
        yield Quota(QuotaEntity.of(parts), values)


def _insert_resource_configs(db: sqlite3.Connection, held: ResourceConfigs) -> None:
    db.executemany(
        "INSERT INTO resource_config (scope, name, key, value) VALUES (?, ?, ?, ?)",
        [(held.resource.scope, held.resource.name, key, value) for key, value in held.configs.items()],
    )


def _erase_resource_configs(db: sqlite3.Connection, held: ResourceConfigs) -> None:
    db.execute(
        "DELETE FROM resource_config WHERE scope = ? AND name = ?",
        (held.resource.scope, held.resource.name),
    )


def _read_resource_configs(db: sqlite3.Connection) -> Iterator[ResourceConfigs]:
    configs: dict[ConfigResource, dict[str, str]] = defaultdict(dict)
    for scope, name, key, value in db.execute("SELECT scope, name, key, value FROM resource_config"):
        configs[ConfigResource(ConfigScope(scope), name)][key] = value
    for resource, values in configs.items():
        yield ResourceConfigs(resource, values)
