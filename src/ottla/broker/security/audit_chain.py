"""The hash chain of an audit log, and its verification.

Each line carries the id of its chain, its sequence number and the SHA-256 of the line before it. A changed, removed or
inserted line breaks the chain at that place. Nothing here is secret: an attacker who can rewrite the whole file can
also compute a new chain, which a hash kept elsewhere reveals.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FIRST_PREV: Final = "0" * 64
_ID_BYTES: Final = 8


class Link(msgspec.Struct, frozen=True, gc=False):
    """The fields of a line that make it part of a chain."""

    chain: str
    seq: int
    prev: str


_LINKS: Final = msgspec.json.Decoder(Link)


class Chain:
    """The position at which the next line is added."""

    def __init__(self, chain: str | None = None, seq: int = 0, head: str = FIRST_PREV) -> None:
        self.id = chain or secrets.token_hex(_ID_BYTES)
        self.seq = seq
        self.head = head

    @classmethod
    def after(cls, line: bytes) -> Chain | None:
        """The chain that ends with this line; None if the line is not part of one."""
        link = link_of(line)
        return None if link is None else cls(link.chain, link.seq, digest(line))

    def link(self, fields: Mapping[str, object]) -> bytes:
        """Link the next line to the chain; returned without its newline."""
        line = msgspec.json.encode({**fields, "chain": self.id, "seq": self.seq + 1, "prev": self.head})
        self.seq += 1
        self.head = digest(line)
        return line


def digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def link_of(line: bytes) -> Link | None:
    try:
        return _LINKS.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


class Place(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class ChainBroken(Exception):  # noqa: N818 - the finding of a verification
    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(f"{place}: {reason}")
        self.place = place
        self.reason = reason


class _Last(NamedTuple):
    seq: int
    digest: str


@dataclass(slots=True)
class Verified:
    """The intact lines."""

    first: dict[str, int] = field(default_factory=dict)
    """The first sequence number of each chain."""
    last: dict[str, _Last] = field(default_factory=dict)
    unchained: int = 0
    """Lines before the first chain, from a release without one."""
    digests: set[str] = field(default_factory=set)
    """The hashes of requested lines."""

    @property
    def lines(self) -> int:
        return sum(last.seq - self.first[chain] + 1 for chain, last in self.last.items())

    def add(self, place: Place, line: bytes, wanted: Iterable[str] = ()) -> None:
        """Raises ChainBroken if this line does not follow the previous one."""
        link = link_of(line)
        if link is None:
            if self.last:
                raise ChainBroken(place, "not an audit line, or its chain, seq or prev is missing")
            self.unchained += 1
            return
        last = self.last.get(link.chain)
        if last is None:
            self._begin(place, link)
        elif link.seq != last.seq + 1:
            raise ChainBroken(place, f"seq {link.seq} follows seq {last.seq}: {_what_happened(link.seq, last.seq)}")
        elif link.prev != last.digest:
            raise ChainBroken(
                place, f"prev does not match the hash of the line before it (seq {last.seq}), which was changed"
            )
        found = digest(line)
        self.last[link.chain] = _Last(link.seq, found)
        if found in wanted:
            self.digests.add(found)

    def _begin(self, place: Place, link: Link) -> None:
        if link.seq == 1 and link.prev != FIRST_PREV:
            raise ChainBroken(place, "the first line of a chain has a hash of a line before it")
        if link.seq > 1 and self.unchained:
            raise ChainBroken(place, f"seq {link.seq} follows lines without a chain: lines were replaced")
        self.first[link.chain] = link.seq


def _what_happened(seq: int, last: int) -> str:
    if seq > last + 2:
        return f"lines {last + 1} to {seq - 1} are missing"
    if seq == last + 2:
        return f"line {last + 1} is missing"
    return "lines were inserted or are out of order"


def verify(files: Mapping[str, Iterable[bytes]], wanted: Iterable[str] = ()) -> Verified:
    """Check lines in the given order; raises ChainBroken at the first that does not match."""
    verified = Verified()
    wanted = frozenset(wanted)
    for file, lines in files.items():
        for number, line in enumerate(lines, 1):
            verified.add(Place(file, number), line.rstrip(b"\r\n"), wanted)
    return verified
