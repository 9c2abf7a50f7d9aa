"""Broker configs: who may connect, and how they prove it."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition

SECURITY: Final = (
    Definition(
        name="authorizer.class.name",
        type=ConfigType.STRING,
        default="",
        is_read_only=True,
        documentation="What decides who may do what. Empty: nobody is asked, and everything is allowed.",
    ),
    Definition(
        name="sasl.enabled.mechanisms",
        type=ConfigType.LIST,
        default=(),
        is_read_only=True,
        documentation=(
            "How clients of a SASL listener may authenticate: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. "
            "Empty: there is no such listener."
        ),
    ),
    Definition(
        name="sasl.server.max.receive.size",
        type=ConfigType.INT,
        default=512 << 10,
        is_read_only=True,
        documentation="The largest request that is read from a client that has not authenticated yet.",
    ),
    Definition(
        name="connections.max.reauth.ms",
        type=ConfigType.LONG,
        default=0,
        is_read_only=True,
        documentation="How long an authentication lasts before the client has to repeat it; 0: as the connection does.",
    ),
    Definition(
        name="ssl.client.auth",
        type=ConfigType.STRING,
        default="none",
        is_read_only=True,
        documentation="Whether clients of a TLS listener must (required) or may (requested) show a certificate.",
    ),
    Definition(
        name="ssl.enabled.protocols",
        type=ConfigType.LIST,
        default=("TLSv1.2", "TLSv1.3"),
        is_read_only=True,
        documentation="The versions of TLS that a client may use.",
    ),
    Definition(
        name="ssl.key.password",
        type=ConfigType.PASSWORD,
        default=None,
        is_read_only=True,
        documentation="What decrypts the broker's private key. Never shown.",
    ),
)
