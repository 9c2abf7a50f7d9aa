"""Fault injection, for tests in other languages. Only with `ottla serve --enable-faults`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

import msgspec

from ottla.core.security import CLUSTER_NAME, AclOperation, ResourceType
from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Done, PartitionIndex, RequestStruct, Struct
from ottla.http.framework.problems import BadRequest, Problem

if TYPE_CHECKING:
    from ottla.broker.faults.fault import Fault as ArmedFault
    from ottla.broker.faults.faults import Faults
    from ottla.http.framework.endpoints import Call

Kind = Literal[
    "error",
    "lose_leadership",
    "delay",
    "throttle",
    "drop",
    "truncate",
    "corrupt",
    "pause",
    "force_rebalance",
    "expire_session",
    "expire_transaction",
    "fail_fsync",
    "fill_disk",
]


class _Parameters(NamedTuple):
    required: frozenset[str] = frozenset()
    allowed: frozenset[str] = frozenset()


_WHERE: Final = frozenset({"api", "topic", "partition", "client_id", "group", "transactional_id", "times"})
_ON_DISK: Final = frozenset({"topic", "partition", "times"})

_PARAMETERS: Final[dict[Kind, _Parameters]] = {
    "error": _Parameters(frozenset({"code"}), _WHERE),
    "lose_leadership": _Parameters(frozenset({"topic"}), _ON_DISK),
    "delay": _Parameters(frozenset({"seconds"}), _WHERE),
    "throttle": _Parameters(frozenset({"seconds"}), _WHERE),
    "drop": _Parameters(allowed=_WHERE | {"after_effect"}),
    "truncate": _Parameters(allowed=_WHERE),
    "corrupt": _Parameters(allowed=_WHERE - {"api"}),
    "pause": _Parameters(allowed=_WHERE),
    "force_rebalance": _Parameters(frozenset({"group"})),
    "expire_session": _Parameters(frozenset({"group"}), frozenset({"client_id"})),
    "expire_transaction": _Parameters(frozenset({"transactional_id"})),
    "fail_fsync": _Parameters(allowed=_ON_DISK),
    "fill_disk": _Parameters(allowed=_ON_DISK),
}


class NewFault(RequestStruct, frozen=True, kw_only=True):
    kind: Kind
    code: str | None = None
    """For `error`: Kafka's error name, such as NOT_LEADER_OR_FOLLOWER."""
    seconds: Annotated[float, msgspec.Meta(ge=0, le=3600)] | None = None
    """For `delay` and `throttle`: the duration."""
    after_effect: bool | None = None
    """For `drop`: execute the request before the connection is closed."""
    times: Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)] | None = None
    """How many matching requests are affected; all if omitted."""
    api: str | None = None
    """Kafka's API name, such as Produce."""
    topic: str | None = None
    partition: PartitionIndex | None = None
    client_id: str | None = None
    group: str | None = None
    transactional_id: str | None = None


class Fault(Struct, frozen=True, kw_only=True):
    id: int
    kind: str
    detail: str
    """Details, such as the error code."""
    where: dict[str, str | int]
    """Which requests match."""
    times: int | None
    struck: int
    """How often it was applied."""


class FaultList(Struct, frozen=True, kw_only=True):
    faults: list[Fault]


async def list_faults(call: Call) -> FaultList:
    return FaultList(faults=[_shown(one) for one in _faults(call)])


async def add_fault(call: Call) -> Fault:
    faults = _faults(call)
    given = await call.body(NewFault)
    arguments = _checked(given)
    try:
        return _shown(getattr(faults, given.kind)(**arguments))
    except ValueError as wrong:
        raise BadRequest(str(wrong)) from None
    except LookupError as nobody:
        raise Problem(404, str(nobody)) from None


def _checked(given: NewFault) -> dict[str, Any]:
    arguments = {
        name: value for name, value in msgspec.structs.asdict(given).items() if name != "kind" and value is not None
    }
    takes = _PARAMETERS[given.kind]
    missing = sorted(takes.required - arguments.keys())
    if missing:
        raise BadRequest(f"a fault of kind {given.kind} needs {', '.join(missing)}")
    unknown = sorted(arguments.keys() - takes.required - takes.allowed)
    if unknown:
        raise BadRequest(f"a fault of kind {given.kind} does not take {', '.join(unknown)}")
    return arguments


async def show_fault(call: Call) -> Fault:
    return _shown(_found(call))


async def remove_fault(call: Call) -> Fault:
    """Remove a fault; returns its final state."""
    fault = _found(call)
    fault.remove()
    return _shown(fault)


async def remove_all(call: Call) -> Done:
    _faults(call).clear()
    return Done()


def _found(call: Call) -> ArmedFault:
    wanted = call.path("id")
    for fault in _faults(call):
        if str(fault.id) == wanted:
            return fault
    raise Problem(404, f"no fault {wanted}", hint="GET /v1/faults lists the faults.")


def _faults(call: Call) -> Faults:
    call.check(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    faults = call.broker.faults
    if faults is None:
        hint = "Start the broker with `ottla serve --enable-faults`, for tests only."
        raise Problem(403, "fault injection is disabled", hint=hint)
    return faults


def _shown(fault: ArmedFault) -> Fault:
    return Fault(
        id=fault.id,
        kind=fault.kind,
        detail=fault.detail,
        where=fault.where.named,
        times=fault.times,
        struck=fault.struck,
    )


_ALL: Final = "/v1/faults"
_ONE: Final = "/v1/faults/{id}"

ENDPOINTS: Final = (
    Endpoint("GET", _ALL, list_faults, "All faults and their counts", answer=FaultList),
    Endpoint("POST", _ALL, add_fault, "Add a fault", body=NewFault, answer=Fault, status=201),
    Endpoint("DELETE", _ALL, remove_all, "Remove all faults", answer=Done),
    Endpoint("GET", _ONE, show_fault, "One fault and its count", answer=Fault),
    Endpoint("DELETE", _ONE, remove_fault, "Remove a fault", answer=Fault),
)
