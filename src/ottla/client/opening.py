"""Opening a connection: DNS, sockets, TLS, API versions, SASL."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from ottla import __version__
from ottla.client.connection import Connection
from ottla.client.errors import (
    AuthenticationFailed,
    BrokerUnavailable,
    ClientError,
    ConnectFailed,
    ConnectionLost,
    ConnectionRefused,
    NotKafka,
    raise_for,
)
from ottla.client.login import log_in
from ottla.core.errors import ErrorCode
from ottla.core.ids import Address
from ottla.wire.apis import API_VERSIONS
from ottla.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

if TYPE_CHECKING:
    from ottla.client.config import ClientConfig

_OLDEST_GREETING: Final = 0


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Connection settings of a client."""

    config: ClientConfig
    tls: ssl.SSLContext | None
    scratch: bytearray
    """The receive buffer; empty between two reads, so connections of a loop can share it."""


async def open_connection(address: Address, settings: ConnectionSettings) -> Connection:
    """A connection to the first working address of the host; the timeout is shared among them."""
    config = settings.config
    loop = asyncio.get_running_loop()
    deadline = loop.time() + config.connect_timeout_ms / 1000
    found = await _resolve(address, config.connect_timeout_ms)
    failures: list[BrokerUnavailable] = []
    for position, each in enumerate(found):
        share_s = max(0.0, deadline - loop.time()) / (len(found) - position)
        try:
            return await _open_one(address, each, settings, share_s)
        except BrokerUnavailable as failed:
            failures.append(failed)
    if len(failures) == 1:
        raise failures[0]
    raise ConnectFailed(
        f"could not connect to any address of {address}: " + "; ".join(map(str, failures))
    ) from failures[-1]


async def _resolve(address: Address, timeout_ms: int) -> list[Address]:
    if _is_ip(address.host):
        return [address]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except TimeoutError:
        raise ConnectFailed(f"could not resolve {address.host!r} within {timeout_ms} ms") from None
    except (OSError, UnicodeError) as unknown:
        raise ConnectFailed(f"could not resolve {address.host!r}: {unknown}; check the host name") from None
    return list(dict.fromkeys(Address(str(where[0]), int(where[1])) for *_, where in found))


def _is_ip(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def _open_one(address: Address, resolved: Address, settings: ConnectionSettings, timeout_s: float) -> Connection:
    connection: Connection | None = None
    try:
        async with asyncio.timeout(timeout_s):
            connection = await _connect(address, resolved, settings)
            await _greet(connection)
            if settings.config.security is not None and settings.config.security.mechanism is not None:
                await log_in(connection, settings.config.security)
            return connection
    except TimeoutError:
        within = f"within {timeout_s * 1000:.0f} ms"
        if connection is None:
            raise ConnectFailed(f"{_tried(address, resolved)} did not accept a connection {within}") from None
        _abandon(connection)
        what = f"{_tried(address, resolved)} accepted the connection but did not answer like a Kafka broker {within}"
        raise ConnectFailed(what) from None
    except BaseException:
        if connection is not None:
            _abandon(connection)
        raise


async def _connect(address: Address, resolved: Address, settings: ConnectionSettings) -> Connection:
    loop = asyncio.get_running_loop()
    try:
        _, connection = await loop.create_connection(
            lambda: Connection(address, settings.config, settings.scratch),
            resolved.host,
            resolved.port,
            ssl=settings.tls,
            server_hostname=address.host if settings.tls is not None else None,
        )
    except ssl.SSLCertVerificationError as distrusted:
        raise AuthenticationFailed(
            f"the certificate of {_tried(address, resolved)} is not trusted: {distrusted.verify_message}; "
            "check ca_file, and that the certificate is for this host name"
        ) from None
    except ssl.SSLError as broken:
        what = f"{_tried(address, resolved)} failed the TLS handshake: {broken.reason or broken}"
        raise NotKafka(f"{what}; check the port and `tls`") from None
    except OSError as refused:
        why = os.strerror(refused.errno) if refused.errno is not None else str(refused) or type(refused).__name__
        what = f"cannot connect to {_tried(address, resolved)}: {why}"
        kind = ConnectionRefused if isinstance(refused, ConnectionRefusedError) else ConnectFailed
        raise kind(f"{what}; check the address, and that a broker runs there") from None
    return connection


async def _greet(connection: Connection) -> None:
    try:
        answer = await _ask_versions(connection, API_VERSIONS.last)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            offered = {each.api_key: each.max_version for each in answer.api_keys}
            highest = min(offered.get(API_VERSIONS.key, _OLDEST_GREETING), API_VERSIONS.last)
            answer = await _ask_versions(connection, highest)
    except ConnectionLost as lost:
        raise ConnectFailed(f"{connection.address} closed the connection on an ApiVersions request: {lost}") from None
    raise_for(answer.error_code, f"{connection.address} rejected the ApiVersions request")
    connection.greeted(
        {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys},
        {each.name: each.max_version_level for each in answer.finalized_features},
    )


async def _ask_versions(connection: Connection, version: int) -> ApiVersionsResponse:
    request = ApiVersionsRequest(client_software_name="ottla", client_software_version=__version__)
    return await connection.ask(request, version=version)


def _abandon(connection: Connection) -> None:
    connection.close(ClientError("the connection was not completed"))


def _tried(address: Address, resolved: Address) -> str:
    return str(address) if address == resolved else f"{address} at {resolved}"
