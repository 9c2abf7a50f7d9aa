"""The catalog of one node: a SQLite file for durability, a view in memory for reads."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.core.errors import ApiError, DataDirError, ResourceNotFound
from ottla.core.ids import TopicId
from ottla.core.sealing import BrokenSeal
from ottla.storage.catalog.acl_filter import matching
from ottla.storage.catalog.catalog import PRODUCER_ID_BLOCK
from ottla.storage.catalog.database import CATALOG_FILE, close_untouched, damaged, open_database, transaction
from ottla.storage.catalog.entries import ProducerIdBlock, Quota, ResourceConfigs, Topic
from ottla.storage.catalog.rows import read_view, reseal, write
from ottla.storage.catalog.rules import (
    check_acl_filter,
    check_growth,
    check_new_acl,
    check_new_topic,
    check_quota,
)
from ottla.storage.catalog.secrets import Secrets
from ottla.storage.catalog.view import CatalogView, Change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ottla.core.sealing import Sealer
    from ottla.storage.catalog.acl_filter import AclFilter
    from ottla.storage.catalog.catalog import Edit, Listener
    from ottla.storage.catalog.entries import (
        Acl,
        ConfigResource,
        DelegationToken,
        QuotaEntity,
        ScramCredential,
        ScramMechanism,
    )
    from ottla.storage.catalog.seal import CatalogSeal

MAX_PRODUCER_ID: Final = 2**63 - 1
_NO_CONFIGS: Final[Mapping[str, str]] = {}


class SqliteCatalog:
    """See `catalog.Catalog` for the guarantees of each method.

    Decisions are made on the view, which matches the file: the file is locked while it is open.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        cluster_id: str,
        view: CatalogView,
        secrets: Secrets,
        seal: CatalogSeal | None = None,
    ) -> None:
        self._db = db
        self._seal = seal
        self._secrets = secrets
        self._cluster_id = cluster_id
        self._view = view
        self._listeners: list[Listener] = []
        self._is_telling = False

    @classmethod
    def open(cls, folder: Path, sealer: Sealer | None = None, *, must_be_sealed: bool = False) -> SqliteCatalog:
        """Open the folder's catalog, or create one; raises DataDirError if it is unusable.

        A `sealer` encrypts its secrets and seals its contents. With `must_be_sealed` the seal must exist.

        The caller holds the lock on the folder: two processes must not both create a catalog.
        """
        if must_be_sealed and not (folder / CATALOG_FILE).exists():
            raise DataDirError(f"{folder} is encrypted, but {CATALOG_FILE} is missing")
        db = open_database(folder)
        try:
            cluster_id: str = db.execute("SELECT id FROM cluster").fetchone()[0]
            secrets = Secrets(sealer)
            view, seal = read_view(db, secrets), None
            if sealer is not None:
                from ottla.storage.catalog.seal import check_seal  # not needed without encryption

                seal = check_seal(db, sealer.ring, cluster_id, view, must_be_sealed=must_be_sealed)
            catalog = cls(db, cluster_id, view, secrets, seal)
        except (sqlite3.Error, AttributeError, TypeError, ValueError, BrokenSeal) as error:
            # SQLite has no checksums: a damaged row may have another type than its column.
            close_untouched(db, folder / CATALOG_FILE)
            raise damaged(folder / CATALOG_FILE, error) from error
        catalog.reseal()
        return catalog

    @property
    def cluster_id(self) -> str:
        return self._cluster_id

    @property
    def view(self) -> CatalogView:
        return self._view

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def create_topic(
        self,
        name: str,
        partitions: int,
        configs: Mapping[str, str] = _NO_CONFIGS,
        *,
        is_internal: bool = False,
        topic_id: TopicId | None = None,
    ) -> Topic:
        topic = Topic(name, topic_id or TopicId.random(), partitions, configs, is_internal)
        check_new_topic(self._view, topic)
        self._commit(Change(None, topic))
        return topic

    def grow_topic(self, topic_id: TopicId, partitions: int) -> Topic:
        topic = self._view.topic_by_id(topic_id)
        check_growth(topic, partitions)
        return self._replace_topic(topic, replace(topic, partitions=partitions))

    def change_topic_configs(self, topic_id: TopicId, edit: Edit[str]) -> Topic:
        topic = self._view.topic_by_id(topic_id)
        return self._replace_topic(topic, replace(topic, configs=edit(topic.configs)))

    def delete_topic(self, topic_id: TopicId) -> Topic:
        topic = self._view.topic_by_id(topic_id)
        self._commit(Change(topic, None))
        return topic

    def put_credential(self, credential: ScramCredential) -> None:
        before = self._view.credentials.get((credential.user, credential.mechanism))
        self._commit(Change(before, credential))

    def delete_credential(self, user: str, mechanism: ScramMechanism) -> None:
        before = self._view.credentials.get((user, mechanism))
        if before is None:
            raise ResourceNotFound(f"user {user!r} has no {mechanism.name} credential")
        self._commit(Change(before, None))

    def put_token(self, token: DelegationToken) -> None:
        self._commit(Change(self._view.tokens.get(token.id), token))

    def delete_tokens(self, token_ids: Iterable[str]) -> None:
        found = (self._view.tokens.get(each) for each in dict.fromkeys(token_ids))
        self._commit(*(Change(token, None) for token in found if token is not None))

    def add_acls(self, acls: Iterable[Acl]) -> None:
        wanted = frozenset(acls)
        for acl in wanted:
            check_new_acl(acl)
        self._commit(*(Change(None, acl) for acl in wanted - self._view.acls))

    def delete_acls(self, wanted: AclFilter) -> frozenset[Acl]:
        check_acl_filter(wanted)
        found = matching(self._view.acls, wanted)
        self._commit(*(Change(acl, None) for acl in found))
        return found

    def change_quota(self, entity: QuotaEntity, edit: Edit[float]) -> None:
        before = self._view.quotas.get(entity)
        after = Quota(entity, edit(before.limits if before else {}))
        check_quota(after)
        self._commit(Change(before, after if after.limits else None))

    def change_configs(self, resource: ConfigResource, edit: Edit[str]) -> None:
        before = self._view.configs.get(resource)
        after = ResourceConfigs(resource, edit(before.configs if before else {}))
        self._commit(Change(before, after if after.configs else None))

    def next_producer_ids(self, count: int = PRODUCER_ID_BLOCK) -> ProducerIdBlock:
        if count < 1:
            raise ValueError(f"count must be at least 1, got {count}")
        with transaction(self._db):
            first: int = self._db.execute("SELECT next_producer_id FROM cluster").fetchone()[0]
            if first > MAX_PRODUCER_ID - count:
                raise ApiError("producer ids are exhausted")
            self._db.execute("UPDATE cluster SET next_producer_id = ?", (first + count,))
        return ProducerIdBlock(first, count)

    def reseal(self) -> None:
        """Encrypt the secrets with the newest key, and seal the catalog with it, if necessary."""
        reseal(self._db, self._secrets, self._view)
        ring = self._secrets.ring
        if ring is not None and (self._seal is None or self._seal.key_id != ring.newest):
            from ottla.storage.catalog.seal import CatalogSeal

            seal = CatalogSeal.of(ring, ring.newest, self._cluster_id, self._view)
            with transaction(self._db):
                seal.store(self._db)
            self._seal = seal

    def close(self) -> None:
        self._db.close()

    def _replace_topic(self, before: Topic, after: Topic) -> Topic:
        self._commit(Change(before, after))
        return after

    def _commit(self, *wanted: Change) -> None:
        if self._is_telling:
            raise RuntimeError("a listener of the catalog must not change it")
        changes = [change for change in wanted if change.before != change.after]
        if not changes:
            return
        total = 0 if self._seal is None else self._seal.after(changes)
        with transaction(self._db):
            for change in changes:
                write(self._db, change, self._secrets)
            if self._seal is not None:
                self._seal.store(self._db, total)
        if self._seal is not None:
            self._seal.become(total)
        # One assignment: a reader in another thread sees the old view or the new one.
        self._view = self._view.after(changes)
        self._tell(changes)

    def _tell(self, changes: list[Change]) -> None:
        self._is_telling = True
        try:
            for change in changes:
                for listener in self._listeners:
                    listener(change)
        finally:
            self._is_telling = False
