"""The members of a classic group, the leader, and the common protocol."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ottla.groups.sizes import MEMBER_BYTES, PENDING_ID_BYTES, protocols_bytes, text_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.groups.actions import Token
    from ottla.wire.messages.join_group import JoinGroupRequestProtocol


class Member(Struct, kw_only=True, eq=False):
    id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[JoinGroupRequestProtocol, ...]
    """The member's protocols, preferred ones first."""
    assignment: bytes = b""
    has_joined: bool = False
    """Whether it will be in the next generation. Stays set if its connection is lost while it waits."""
    join_token: Token | None = None
    sync_token: Token | None = None
    is_new: bool = False
    """Whether it still waits for its first response. It sends no heartbeats before that, so waiting does not show that
    it is alive.
    """
    knows_its_id: bool = True

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether its session does not expire because it waits for a response."""
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
    """Members by id, in join order, and ids that were assigned but not used yet."""

    __slots__ = ("_by_id", "_by_instance", "_counted", "_member_bytes", "_supporters", "leader_id", "pending")

    def __init__(self) -> None:
        self._by_id: dict[str, Member] = {}
        self._by_instance: dict[str, Member] = {}
        self._supporters: Counter[str] = Counter()
        """The number of members that support each protocol."""
        self._counted: dict[str, int] = {}
        """The memory of each member, as of its last change."""
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
        """The member whose request has this token."""
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
        """Replace a static member by its new instance, with its assignment and leadership."""
        is_leader = self.leader_id == member.id
        renamed = replace(member, id=new_id, has_joined=False, join_token=None, sync_token=None, is_new=False)
        self.remove(member)
        self.add(renamed)
        if is_leader:
            self.leader_id = new_id
        return renamed

    def elect_leader(self) -> bool:
        """Ensure that the leader has joined; False if no member has."""
        joined = [member for member in self if member.has_joined]
        # A disconnected leader would keep all members waiting for its assignment.
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
        """Each member votes for its first protocol that all support; ties go to the earliest vote."""
        votes = Counter(next(each.name for each in member.protocols if self.all_have(each.name)) for member in self)
        return votes.most_common(1)[0][0]
