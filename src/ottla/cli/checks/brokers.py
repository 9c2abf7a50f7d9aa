"""Checks of a running broker: it answers, and so do its advertised addresses."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ottla.cli.checks.findings import Finding, note, ok, wrong
from ottla.cli.checks.ports import short_timeouts
from ottla.client.addresses import parse_addresses
from ottla.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ottla.cli.connecting import Reach
    from ottla.client.view import BrokerAddress
    from ottla.core.ids import Address

_ADVERTISE: Final = (
    "set net.advertised (on Kafka: advertised.listeners) to an address at which clients, this machine too, "
    "reach the broker, and restart it"
)


async def check_brokers(reach: Reach) -> list[Finding]:
    try:
        async with reach.client(**short_timeouts()) as client:
            about = await client.admin.describe_cluster()
    except ClientError as failed:
        return [judge_silence(reach.servers, str(failed), is_chosen=reach.is_chosen)]
    asked = parse_addresses(reach.servers)
    findings = [ok("broker", f"{reach.servers} answers, as one of {len(about.brokers)}")]
    for broker in about.brokers:
        answer = await _ask(reach, broker)
        findings.append(judge_advertised(asked, broker, answer, about.cluster_id))
    return findings


def judge_silence(servers: str, problem: str, *, is_chosen: bool) -> Finding:
    if is_chosen:
        return wrong("broker", problem, "look at the address, and at TLS and SASL; start the broker if it is down")
    return note("broker", f"none answers at {servers}", "start one with `ottla serve`, or name one with --broker")


def judge_advertised(
    asked: Sequence[Address], broker: BrokerAddress, answer: str | ClientError | None, cluster_id: str | None
) -> Finding:
    """Judge an advertised address by the result of connecting to it: a cluster id, or an error."""
    subject, advertised = f"broker {broker.node_id}", broker.address
    if _is_of_kind(advertised, "is_unspecified"):
        return wrong(subject, f"it advertises {advertised}, which clients cannot connect to", _ADVERTISE)
    if _is_of_kind(advertised, "is_loopback") and not any(_is_of_kind(each, "is_loopback") for each in asked):
        return wrong(
            subject, f"it advertises {advertised}, which on other machines means those machines themselves", _ADVERTISE
        )
    if isinstance(answer, ClientError):
        return wrong(subject, f"it advertises {advertised}, and connecting there failed: {answer}", _ADVERTISE)
    if answer != cluster_id:
        return wrong(subject, f"it advertises {advertised}, where another cluster answers", _ADVERTISE)
    if advertised in asked:
        return ok(subject, f"it advertises {advertised}, the address that was asked")
    return ok(subject, f"it advertises {advertised}, and answers there")


async def _ask(reach: Reach, broker: BrokerAddress) -> str | ClientError | None:
    there = replace(reach, profile=replace(reach.profile, servers=str(broker.address)))
    try:
        async with there.client(**short_timeouts()) as client:
            return (await client.admin.describe_cluster()).cluster_id
    except ClientError as failed:
        return failed


def _is_of_kind(address: Address, kind: str) -> bool:
    if address.host == "localhost":
        return kind == "is_loopback"
    try:
        return bool(getattr(ip_address(address.host), kind))
    except ValueError:
        return False
