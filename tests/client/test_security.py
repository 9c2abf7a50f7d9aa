"""TLS and SASL with a broker: accepted and refused clients, and their errors."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import ssl
from typing import TYPE_CHECKING, Any

import pytest

from ottla.client.addresses import parse_addresses
from ottla.client.config import ClientConfig
from ottla.client.errors import AuthenticationFailed, ConnectFailed, ConnectionLost, NotKafka
from ottla.client.router import Purpose, Router
from ottla.client.security import Security
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from ottla.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

from .certificates import make_certificates
from .fake_broker import FakeBroker, HangUp, serving, stranger
from .running import LOOPS, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from .certificates import Certificates

PLAIN = Security(mechanism="PLAIN", username="ann", password="secret")
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


async def connect(broker: FakeBroker | str, security: Security | None, **options: Any) -> None:
    """Connect, send a request, and close."""
    servers = broker if isinstance(broker, str) else f"localhost:{broker.port}"
    router = Router(
        parse_addresses(servers), ClientConfig(security=security, metadata_refresh_retry_count=1, **options)
    )
    try:
        await router.start()
        assert router.view.cluster_id == "fake"
    finally:
        await router.close()


# TLS


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_trusted_certificate_is_accepted(
    certificates: Certificates, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker, tls=certificates.server_context()):
            await connect(broker, Security(tls=True, ca_file=str(certificates.authority)))

    run(scenario(), loop)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_many_responses_in_one_tls_record_are_all_read(
    certificates: Certificates, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        broker = FakeBroker({HeartbeatRequest: lambda _: HeartbeatResponse(error_code=0)})
        async with serving(broker, tls=certificates.server_context()):
            security = Security(tls=True, ca_file=str(certificates.authority))
            router = Router(parse_addresses(broker.address), ClientConfig(security=security))
            await router.start()
            connection = await router.connection(0, Purpose.ASK)
            for _ in range(20):
                await asyncio.gather(*(connection.ask(BEAT, timeout_s=5) for _ in range(50)))
            await router.close()

    run(scenario(), loop)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_an_untrusted_certificate_is_refused(
    certificates: Certificates, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker, tls=certificates.server_context()):
            with pytest.raises(AuthenticationFailed, match=r"is not trusted: .*check ca_file"):
                await connect(broker, Security(tls=True))

    run(scenario(), loop)


def test_a_certificate_for_another_name_is_refused_unless_verification_is_disabled(certificates: Certificates) -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start(certificates.server_context(), host="127.0.0.2")
        authority = str(certificates.authority)
        with pytest.raises(AuthenticationFailed, match="certificate is for this host name"):
            await connect(broker.address, Security(tls=True, ca_file=authority))
        await connect(broker.address, Security(tls=True, ca_file=authority, check_hostname=False))
        await broker.stop()

    run(scenario())


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_client_certificate_is_sent_on_request(
    certificates: Certificates, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker, tls=certificates.server_context(wants_client=True)):
            authority, own = str(certificates.authority), certificates.client
            await connect(
                broker,
                Security(tls=True, ca_file=authority, cert_file=str(own), key_file=str(certificates.key_of(own))),
            )
            with pytest.raises(ConnectFailed, match=r"closed the connection on .*client certificate"):
                await connect(broker, Security(tls=True, ca_file=authority))

    run(scenario(), loop)


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_the_brokers_reason_for_refusing_a_certificate_is_quoted(
    certificates: Certificates, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = certificates.server_context(wants_client=True).wrap_bio(incoming, outgoing, server_side=True)
        is_refused = False
        while not is_refused:
            incoming.write(await reader.read(65536))
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                is_refused = True
            writer.write(outgoing.read())
        await reader.read()  # otherwise the close would discard the data
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        address = f"localhost:{server.sockets[0].getsockname()[1]}"
        with pytest.raises(AuthenticationFailed, match=r"rejected the client certificate.*check cert_file"):
            await connect(address, Security(tls=True, ca_file=str(certificates.authority)))
        server.close()
        await server.wait_closed()

    run(scenario(), loop)


def test_plaintext_to_a_tls_port_says_so(certificates: Certificates) -> None:
    async def scenario() -> None:
        broker = FakeBroker()
        async with serving(broker, tls=certificates.server_context()):
            with pytest.raises((NotKafka, ConnectFailed), match="TLS"):
                await connect(broker, None)

    run(scenario())


def test_tls_to_a_plaintext_port_says_so() -> None:
    async def scenario() -> None:
        async with stranger(answers=b"HTTP/1.1 400 Bad Request\r\n\r\n") as address:
            with pytest.raises(NotKafka, match=r"failed the TLS handshake: .*; check the port"):
                await connect(address, Security(tls=True))

    run(scenario())


def test_tls_to_a_silent_server_times_out() -> None:
    async def scenario() -> None:
        async with stranger() as address:
            with pytest.raises(ConnectFailed, match=r"did not accept a connection within \d+ ms"):
                await connect(address, Security(tls=True), connect_timeout_ms=100)

    run(scenario())


# SASL


class SaslBroker(FakeBroker):
    """Accepts `ann` with the password `secret`; closes unauthenticated connections."""

    def __init__(self, mechanism: str, lifetime_ms: int = 0) -> None:
        super().__init__(
            {
                SaslHandshakeRequest: self._shake,
                SaslAuthenticateRequest: self._authenticate,
                HeartbeatRequest: lambda _: self._if_known(HeartbeatResponse(error_code=0)),
                MetadataRequest: lambda request: self._if_known(self.metadata(request)),
            }
        )
        self.mechanism = mechanism
        self.lifetime_ms = lifetime_ms
        self.is_known = False
        self.is_shaking = False
        self.said: list[str] = []

    def _shake(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        is_offered = request.mechanism == self.mechanism
        self.is_shaking, self.is_known = is_offered, False
        return SaslHandshakeResponse(error_code=0 if is_offered else 33, mechanisms=(self.mechanism,))

    def _if_known(self, answer: Any) -> Any:
        if not self.is_known:
            raise HangUp
        return answer

    def _authenticate(self, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        assert self.is_shaking
        said = request.auth_bytes.decode()
        self.said.append(said)
        match self.mechanism:
            case "PLAIN":
                return self._outcome(is_known=said == "\0ann\0secret")
            case "OAUTHBEARER" if said == "\x01":
                return self._outcome(is_known=False)
            case "OAUTHBEARER":
                self.is_known = "Bearer good" in said
                return self._outcome(is_known=True) if self.is_known else self._go_on(b'{"status":"invalid_token"}')
        return self._scram(said)

    def _scram(self, said: str) -> SaslAuthenticateResponse:
        if said.startswith("n,,"):
            self._bare = said[3:]
            self._first = f"r={said.partition('r=')[2]}more,s={base64.b64encode(b'salt').decode()},i=4096"
            return self._go_on(self._first.encode())
        name = self.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        bare, _, proof = said.partition(",p=")
        signed = f"{self._bare},{self._first},{bare}".encode()
        salted = hashlib.pbkdf2_hmac(name, b"secret", b"salt", 4096)
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        final = base64.b64encode(hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name))
        return self._outcome(is_known=base64.b64decode(proof) == expected, says=b"v=" + final)

    def _go_on(self, challenge: bytes) -> SaslAuthenticateResponse:
        return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=challenge)

    def _outcome(self, *, is_known: bool, says: bytes = b"") -> SaslAuthenticateResponse:
        self.is_known = is_known
        self.is_shaking = False
        if not is_known:
            return SaslAuthenticateResponse(error_code=58, error_message="wrong password", auth_bytes=b"")
        return SaslAuthenticateResponse(
            error_code=0, error_message=None, auth_bytes=says, session_lifetime_ms=self.lifetime_ms
        )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_right_password_is_accepted_and_a_wrong_one_rejected(mechanism: Any) -> None:
    async def scenario() -> None:
        broker = SaslBroker(mechanism)
        async with serving(broker):
            await connect(broker, Security(mechanism=mechanism, username="ann", password="secret"))
            for name, password in (("ann", "wrong"), ("eve", "secret")):
                if mechanism != "PLAIN" and name == "eve":
                    continue  # this broker's SCRAM has one user
                with pytest.raises(AuthenticationFailed, match="rejected the login: wrong password"):
                    await connect(broker, Security(mechanism=mechanism, username=name, password=password))

    run(scenario())


def test_a_refused_login_is_not_tried_again() -> None:
    async def scenario() -> None:
        broker = SaslBroker("PLAIN")
        async with serving(broker):
            router = Router(
                parse_addresses(broker.address),
                ClientConfig(security=Security(mechanism="PLAIN", username="a", password="b")),
            )
            with pytest.raises(AuthenticationFailed):
                await router.start()
            await router.close()
            assert len(broker.said) == 1

    run(scenario())


def test_a_token_is_fetched_for_each_connection_and_a_bad_one_rejected() -> None:
    async def scenario() -> None:
        broker = SaslBroker("OAUTHBEARER")
        tokens = ["good.1", "bad"]
        async with serving(broker):
            security = Security(mechanism="OAUTHBEARER", token=lambda: tokens.pop(0))
            broker.host = "localhost"  # or it would be connected to under both names
            await connect(broker, security)
            with pytest.raises(AuthenticationFailed, match="rejected the login"):
                await connect(broker, security)
            assert broker.said[-1] == "\x01"

    run(scenario())


def test_a_failing_token_provider_is_reported() -> None:
    def fail() -> str:
        raise KeyError("TOKEN")

    async def scenario() -> None:
        broker = SaslBroker("OAUTHBEARER")
        async with serving(broker):
            with pytest.raises(AuthenticationFailed, match=r"could not get an OAUTHBEARER token: KeyError\('TOKEN'\)"):
                await connect(broker, Security(mechanism="OAUTHBEARER", token=fail))

    run(scenario())


def test_the_error_for_an_unsupported_mechanism_lists_the_supported_ones() -> None:
    async def scenario() -> None:
        broker = SaslBroker("SCRAM-SHA-512")
        async with serving(broker):
            with pytest.raises(AuthenticationFailed, match="does not offer PLAIN; it offers SCRAM-SHA-512"):
                await connect(broker, PLAIN)

    run(scenario())


def test_missing_credentials_are_reported_with_the_setting_to_use() -> None:
    async def scenario() -> None:
        broker = SaslBroker("PLAIN")
        async with serving(broker):
            with pytest.raises(ConnectionLost, match="authentication may be required; see `security`"):
                await connect(broker.address, None)

    run(scenario())


def test_tls_and_sasl_work_together(certificates: Certificates) -> None:
    async def scenario() -> None:
        broker = SaslBroker("SCRAM-SHA-256")
        async with serving(broker, tls=certificates.server_context()):
            authority = str(certificates.authority)
            await connect(
                broker,
                Security(tls=True, ca_file=authority, mechanism="SCRAM-SHA-256", username="ann", password="secret"),
            )

    run(scenario())


def test_a_session_is_renewed_before_it_ends_and_requests_wait_meanwhile() -> None:
    async def scenario() -> None:
        broker = SaslBroker("PLAIN", lifetime_ms=20)
        async with serving(broker):
            router = Router(parse_addresses(broker.address), ClientConfig(security=PLAIN))
            await router.start()
            connection = await router.connection(0, Purpose.ASK)
            while broker.count(SaslHandshakeRequest) < 3:
                assert (await connection.ask(BEAT)).error_code == 0
            assert broker.connections == 1
            await router.close()

    run(scenario())


def test_requests_held_back_by_a_login_go_out_after_it_in_order() -> None:
    async def scenario() -> None:
        broker = SaslBroker("PLAIN")
        async with serving(broker):
            router = Router(parse_addresses(broker.address), ClientConfig(security=PLAIN))
            await router.start()
            connection = await router.connection(0, Purpose.ASK)
            connection.hold_back()
            beats = [connection.ask(HeartbeatRequest(group_id="g", generation_id=n, member_id="m")) for n in range(3)]
            await connection.ask(SaslHandshakeRequest(mechanism="PLAIN"), version=1, is_login=True)
            await connection.ask(SaslAuthenticateRequest(auth_bytes=b"\0ann\0secret"), is_login=True)
            assert broker.count(HeartbeatRequest) == 0
            connection.let_go()
            await asyncio.gather(*beats)
            arrived = [each.generation_id for each in broker.asked if isinstance(each, HeartbeatRequest)]
            assert arrived == [0, 1, 2]
            await router.close()

    run(scenario())


def test_a_session_that_is_not_renewed_ends_the_connection() -> None:
    async def scenario() -> None:
        broker = SaslBroker("PLAIN", lifetime_ms=20)
        async with serving(broker):
            router = Router(parse_addresses(broker.address), ClientConfig(security=PLAIN))
            await router.start()
            connection = await router.connection(0, Purpose.ASK)
            broker.mechanism = "SCRAM-SHA-512"
            await connection.closed
            with pytest.raises(AuthenticationFailed, match="does not offer PLAIN"):
                await connection.ask(BEAT)
            await router.close()

    run(scenario())
