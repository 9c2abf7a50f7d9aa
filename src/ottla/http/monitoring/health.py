"""`/health`: liveness. `/ready`: readiness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import Struct
from ottla.http.framework.problems import Problem

if TYPE_CHECKING:
    from ottla.http.framework.endpoints import Call


class Health(Struct, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"
    node_id: int
    kafka: str
    partitions_without_leader: int = 0
    """In the whole cluster; `/v1/cluster` lists them with the reason."""


async def health(call: Call) -> Health:
    replication = call.broker.replication
    return Health(
        node_id=call.broker.config.node_id,
        kafka=str(call.broker.address),
        partitions_without_leader=0 if replication is None else len(replication.leaderless()),
    )


async def ready(call: Call) -> Health:
    """Readiness. Fails while the disk is full or a partition is offline, so that traffic goes elsewhere."""
    if call.broker.disk_space.is_full:
        raise Problem(503, "the disk is full: appends fail", hint="Free space in the data folder, or reduce retention.")
    offline = [str(one.at) for one in call.broker.topics.partitions_here() if one.is_offline]
    if offline:
        hint = "See the broker's log. A restart recovers the partition."
        raise Problem(503, f"offline: {', '.join(offline[:10])}", hint=hint)
    return await health(call)


ENDPOINTS: Final = (
    Endpoint("GET", "/health", health, "Liveness check", answer=Health),
    Endpoint("GET", "/ready", ready, "Readiness check", answer=Health),
)
