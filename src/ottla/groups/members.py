"""The members of a classic group: who they are, who leads, and which protocol they have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ottla.groups.sizes import MEMBER_BYTES, PENDING_ID_BYTES, protocols_bytes, text_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.groups.actions import Token
    from ottla.wire.messages.join_group import JoinGroupRequestProtocol


@dataclass(slots=True, kw_only=True, eq=False)
class Member:
    id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[JoinGroupRequestProtocol, ...]
    """In the member's order of preference."""
    assignment: bytes = b""
    has_joined: bool = False
    """Whether it will be in the next generation. Stays so if its connection is lost while it waits."""
    join_token: Token | None = None
    sync_token: Token | None = None
    is_new: bool = False
    """Whether it still waits for its first answer. Nobody heartbeats before that, so waiting proves nothing."""
    knows_its_id: bool = True

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether silence is no sign of death: it waits for an answer from us."""
        return not self.is_new and (self.join_token is not None or self.sync_token is not None)

    @property
    def protocol_names(self) -> set[str]:
        return {protocol.name for protocol in self.protocols}

    @property
    def held_bytes(self) -> int:
        size = MEMBER_BYTES + protocols_bytes(self.protocols) + len(self.assignment)
        return size + text_bytes(self.id, self.client_id, self.group_instance_id)

    def metadata(self, protocol_name: str | None) -> bytes:
        return next((protocol.metadata for protocol in self.protocols if protocol.name == protocol_name), b"")


class Members:
    """Members by id, in the order in which they came, and ids that were handed out but not used yet."""

    __slots__ = ("_by_id", "_by_instance", "_counted", "_member_bytes", "_supporters", "leader_id", "pending")

    def __init__(self) -> None:
        self._by_id: dict[str, Member] = {}
        self._by_instance: dict[str, Member] = {}
        self._supporters: Counter[str] = Counter()
        """How many members have each protocol."""
        self._counted: dict[str, int] = {}
        """What each member takes, as it was when it was last changed."""
        self._member_bytes = 0
        self.pending: set[str] = set()
        self.leader_id: str | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._by_id.values())

    def get(self, member_id: str) -> Member | None:
        return self._by_id.get(member_id)

    def static(self, group_instance_id: str | None) -> Member | None:
        return None if group_instance_id is None else self._by_instance.get(group_instance_id)

    def waiting(self, token: Token) -> Member | None:
        """The member whose request this is."""
        return next((member for member in self if token in (member.join_token, member.sync_token)), None)

    @property
    def held_bytes(self) -> int:
        return self._member_bytes + PENDING_ID_BYTES * len(self.pending)

    @property
    def joined(self) -> int:
        return sum(member.has_joined for member in self)

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.has_joined for member in self)

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self), default=0)

    def add(self, member: Member) -> None:
        self.pending.discard(member.id)
        self._by_id[member.id] = member
        self._supporters.update(member.protocol_names)
        if member.group_instance_id is not None:
            self._by_instance[member.group_instance_id] = member
        if self.leader_id is None:
            self.leader_id = member.id
        self._count(member)

    def remove(self, member: Member) -> None:
        del self._by_id[member.id]
        self._member_bytes -= self._counted.pop(member.id)
        self._supporters.subtract(member.protocol_names)
        if member.group_instance_id is not None:
            self._by_instance.pop(member.group_instance_id, None)
        if self.leader_id == member.id:
            self.leader_id = next(iter(self._by_id), None)

    def rename(self, member: Member, new_id: str) -> Member:
        """Give a static member's place, its assignment and its lead to whoever came back in its name."""
        is_leader = self.leader_id == member.id
        renamed = replace(member, id=new_id, has_joined=False, join_token=None, sync_token=None, is_new=False)
        self.remove(member)
        self.add(renamed)
        if is_leader:
            self.leader_id = new_id
        return renamed

    def elect_leader(self) -> bool:
        """Make sure that the leader is one of those who have joined; False if nobody has."""
        joined = [member for member in self if member.has_joined]
        # A leader that hung up would keep everybody waiting for its assignment.
        candidates = [member.id for member in joined if member.join_token is not None]
        candidates = candidates or [member.id for member in joined]
        if not candidates:
            return False
        if self.leader_id not in candidates:
            self.leader_id = candidates[0]
        return True

    def change_protocols(self, member: Member, protocols: tuple[JoinGroupRequestProtocol, ...]) -> None:
        self._supporters.subtract(member.protocol_names)
        member.protocols = protocols
        self._supporters.update(member.protocol_names)
        self._count(member)

    def assign(self, member: Member, assignment: bytes) -> None:
        if member.assignment != assignment:
            member.assignment = assignment
            self._count(member)

    def _count(self, member: Member) -> None:
        size = member.held_bytes
        self._member_bytes += size - self._counted.get(member.id, 0)
        self._counted[member.id] = size

    def all_have(self, protocol_name: str) -> bool:
        return self._supporters[protocol_name] == len(self)

    def select_protocol(self) -> str:
        """Each member votes for the first of its protocols that all have; of equals the earliest vote wins."""
        votes = Counter(next(each.name for each in member.protocols if self.all_have(each.name)) for member in self)
        return votes.most_common(1)[0][0]
