"""Detects changes of a catalog made without the keys of its folder.

An HMAC of the catalog's contents is stored with it, in the same transaction as each change. Updating
it must take constant time: so each entry has a secret number,
the HMAC covers their sum, and a change subtracts and adds numbers. Without the key, the numbers are
unknown, and other entries with the same sum cannot be found (a keyed multiset hash).
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Final, assert_never

from ottla.core.sealing import BrokenSeal, UnknownKey, catalog_key
from ottla.storage.catalog.entries import Acl, DelegationToken, Entry, Quota, ResourceConfigs, ScramCredential, Topic

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from ottla.core.keys import KeyRing
    from ottla.storage.catalog.view import CatalogView, Change

_HASH: Final = "sha512"
_NUMBER_BYTES: Final = hashlib.new(_HASH).digest_size
_MODULUS: Final = 1 << 8 * _NUMBER_BYTES


class CatalogSeal:
    """The seal of one catalog, with one key."""

    def __init__(self, ring: KeyRing, key_id: int, cluster_id: str, total: int) -> None:
        self.key_id = key_id
        self._key = catalog_key(ring.keys[key_id])
        self._cluster_id = cluster_id
        self._total = total

    @classmethod
    def of(cls, ring: KeyRing, key_id: int, cluster_id: str, view: CatalogView) -> CatalogSeal:
        empty = cls(ring, key_id, cluster_id, 0)
        empty.add(_entries(view))
        return empty

    def add(self, entries: Iterable[Entry]) -> None:
        self._total = (self._total + sum(map(self._number, entries))) % _MODULUS

    def after(self, changes: Iterable[Change]) -> int:
        """The sum after these changes."""
        total = self._total
        for change in changes:
            total -= 0 if change.before is None else self._number(change.before)
            total += 0 if change.after is None else self._number(change.after)
        return total % _MODULUS

    def become(self, total: int) -> None:
        self._total = total

    def store(self, db: sqlite3.Connection, total: int | None = None) -> None:
        """Store the seal inside the caller's transaction."""
        code = self._code(self._total if total is None else total)
        db.execute("INSERT OR REPLACE INTO seal (only_row, key_id, code) VALUES (1, ?, ?)", (self.key_id, code))

    def is_code(self, code: bytes) -> bool:
        return hmac.compare_digest(self._code(self._total), code)

    def _code(self, total: int) -> bytes:
        text = f"catalog {self._cluster_id} ".encode() + total.to_bytes(_NUMBER_BYTES)
        return hmac.digest(self._key, text, _HASH)

    def _number(self, entry: Entry) -> int:
        return int.from_bytes(hmac.digest(self._key, b"entry " + _canonical(entry), _HASH))


def check_seal(
    db: sqlite3.Connection, ring: KeyRing, cluster_id: str, view: CatalogView, *, must_be_sealed: bool
) -> CatalogSeal | None:
    """The verified seal of the catalog; None if it has none yet. Raises BrokenSeal if it does not match."""
    row = db.execute("SELECT key_id, code FROM seal").fetchone()
    if row is None:
        if must_be_sealed:
            raise BrokenSeal("its seal is missing: it was modified without the keys")
        return None
    key_id, code = int(row[0]), bytes(row[1])
    if key_id not in ring.keys:
        raise UnknownKey(f"it is sealed with key {key_id}, which is missing from the given keys")
    seal = CatalogSeal.of(ring, key_id, cluster_id, view)
    if not seal.is_code(code):
        raise BrokenSeal("its seal is broken: it was modified without the keys")
    return seal


def _entries(view: CatalogView) -> Iterable[Entry]:
    yield from view.topics.values()
    yield from view.credentials.values()
    yield from view.tokens.values()
    yield from view.acls
    yield from view.quotas.values()
    yield from view.configs.values()


def _canonical(entry: Entry) -> bytes:
    """A unique byte representation of the entry."""
    parts: list[object]
    match entry:
        case Topic():
            parts = ["topic", entry.name, entry.id.text, entry.partitions, entry.is_internal, dict(entry.configs)]
        case ScramCredential():
            keys = [each.hex() for each in (entry.salt, entry.stored_key, entry.server_key)]
            # Omitted if there is none, so that seals of earlier releases stay valid.
            expiry = [] if entry.expires_ms is None else [entry.expires_ms]
            parts = ["user", entry.user, int(entry.mechanism), entry.iterations, *keys, *expiry]
        case DelegationToken():
            times = [entry.issued_ms, entry.expires_ms, entry.max_ms]
            parts = ["token", entry.id, entry.owner, entry.requester, list(entry.renewers), *times]
        case Acl():
            numbers = [int(each) for each in (entry.resource_type, entry.pattern_type, entry.operation)]
            names = [entry.resource_name, entry.principal, entry.host]
            parts = ["acl", *numbers, int(entry.permission), *names]
        case Quota():
            parts = ["quota", dict(entry.entity.parts), {key: float(each) for key, each in entry.limits.items()}]
        case ResourceConfigs():
            parts = ["configs", int(entry.resource.scope), entry.resource.name, dict(entry.configs)]
        case _:
            assert_never(entry)
    return json.dumps(parts, sort_keys=True).encode()
