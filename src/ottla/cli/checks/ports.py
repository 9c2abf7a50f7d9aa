"""The ports that a broker would listen on: free, taken by a broker, or taken by something else."""

from __future__ import annotations

import errno
import http.client
import os
import socket
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from ottla.cli.checks.findings import Finding, note, ok, wrong
from ottla.cli.profiles import Profile
from ottla.client.errors import ClientError
from ottla.core.ids import Address

if TYPE_CHECKING:
    from ottla.client.admin.cluster import ClusterDescription
    from ottla.net.config import NetConfig

TIMEOUT_MS: Final = 3000
_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - compared with, not listened on


class State(Enum):
    FREE = auto()
    TAKEN = auto()
    FORBIDDEN = auto()
    NO_SUCH_HOST = auto()


@dataclass(frozen=True, slots=True)
class Port:
    setting: str
    host: str
    number: int
    state: State
    answer: str | None = None
    """Who answers there, if it is one of us."""
    reason: str = ""

    @property
    def subject(self) -> str:
        return f"port {self.number}"


def check_http_port(host: str, number: int) -> list[Finding]:
    if number <= 0:
        return []
    state, reason = try_port(host, number)
    answer = _health(_ANY.get(host, host), number) if state is State.TAKEN else None
    return [judge_port(Port("http.port", host, number, state, answer, reason))]


async def check_kafka_port(net: NetConfig) -> list[Finding]:
    if net.port == 0:
        return []
    state, reason = try_port(net.host, net.port)
    about = await _cluster_at(_ANY.get(net.host, net.host), net.port) if state is State.TAKEN else None
    answer = None if about is None else "a Kafka broker"
    findings = [judge_port(Port("net.port", net.host, net.port, state, answer, reason))]
    if net.advertised:
        findings.append(judge_configured(net.advertised, about, _resolution(net.advertised)))
    return findings


def judge_port(port: Port) -> Finding:
    match port.state:
        case State.FREE:
            return ok(port.subject, f"free, for {port.setting}")
        case State.TAKEN if port.answer is not None:
            return ok(port.subject, f"{port.answer} answers there")
        case State.TAKEN:
            fix = f"find it with `ss -ltnp 'sport = :{port.number}'` and stop it, or set {port.setting} to another"
            return wrong(port.subject, "taken by a program that is not a broker", fix)
        case State.FORBIDDEN:
            fix = f"set {port.setting} to 1024 or higher, or give the program CAP_NET_BIND_SERVICE"
            return wrong(port.subject, "not permitted for this user", fix)
        case State.NO_SUCH_HOST:
            fix = "set net.host to an address of this machine, or to 0.0.0.0 for all of them"
            return wrong(port.subject, f"cannot listen on {port.host}: {port.reason}", fix)


def judge_configured(advertised: str, about: ClusterDescription | None, resolution: str | None) -> Finding:
    """Compare `net.advertised` with the running broker's advertised address, and resolve its name."""
    if resolution is not None:
        fix = "set net.advertised to a name or an address that clients can find"
        return wrong(
            "advertised", f"net.advertised is {advertised}, and its host name cannot be resolved: {resolution}", fix
        )
    if about is None:
        return ok("advertised", f"clients will connect to {advertised}")
    advertised_addresses = [str(each.address) for each in about.brokers]
    if advertised in advertised_addresses:
        return ok("advertised", f"the running broker advertises {advertised}, as configured")
    text = f"net.advertised is {advertised}, but the running broker advertises {', '.join(advertised_addresses)}"
    return note("advertised", text, "restart the broker with this configuration")


def try_port(host: str, number: int) -> tuple[State, str]:
    """Try to listen on the address."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, number, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen()
    except socket.gaierror as unknown:
        return State.NO_SUCH_HOST, unknown.strerror or str(unknown)
    except OSError as refused:
        reason = os.strerror(refused.errno or 0)
        if refused.errno == errno.EADDRINUSE:
            return State.TAKEN, reason
        return (State.FORBIDDEN if refused.errno in (errno.EACCES, errno.EPERM) else State.NO_SUCH_HOST), reason
    return State.FREE, ""


def _resolution(advertised: str) -> str | None:
    host = advertised.rpartition(":")[0].strip("[]")
    try:
        socket.getaddrinfo(host, None)
    except OSError as unknown:
        return unknown.strerror or str(unknown)
    return None


async def _cluster_at(host: str, number: int) -> ClusterDescription | None:
    from ottla.cli.connecting import Reach

    reach = Reach(Profile(servers=str(Address(host, number))))
    try:
        async with reach.client(**short_timeouts()) as client:
            return await client.admin.describe_cluster()
    except ClientError:
        return None


def short_timeouts() -> dict[str, int]:
    """Client options with short timeouts."""
    return {
        "connect_timeout_ms": TIMEOUT_MS,
        "request_timeout_ms": TIMEOUT_MS,
        "metadata_refresh_retry_count": 1,
    }


def _health(host: str, number: int) -> str | None:
    connection = http.client.HTTPConnection(host, number, timeout=TIMEOUT_MS / 1000)
    try:
        connection.request("GET", "/health")
        response = connection.getresponse()
        is_ottla = response.status == http.client.OK and b'"kafka"' in response.read(4096)
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return "Ottla" if is_ottla else None
