"""Broker configs: authentication and authorization."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition

SECURITY: Final = (
    Definition(
        name="authorizer.class.name",
        type=ConfigType.STRING,
        default="",
        is_read_only=True,
        documentation="The authorizer. Empty: no authorization, everything is allowed.",
    ),
    Definition(
        name="sasl.enabled.mechanisms",
        type=ConfigType.LIST,
        default=(),
        is_read_only=True,
        documentation=(
            "The SASL mechanisms: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER. Empty: there is no SASL listener."
        ),
    ),
    Definition(
        name="sasl.server.max.receive.size",
        type=ConfigType.INT,
        default=512 << 10,
        is_read_only=True,
        documentation="The maximum request size before authentication.",
    ),
    Definition(
        name="connections.max.reauth.ms",
        type=ConfigType.LONG,
        default=0,
        is_read_only=True,
        documentation="How long a login lasts before the client must reauthenticate; 0 for no limit.",
    ),
    Definition(
        name="ssl.client.auth",
        type=ConfigType.STRING,
        default="none",
        is_read_only=True,
        documentation="Whether clients of a TLS listener must (required) or may (requested) present a certificate.",
    ),
    Definition(
        name="ssl.enabled.protocols",
        type=ConfigType.LIST,
        default=("TLSv1.2", "TLSv1.3"),
        is_read_only=True,
        documentation="The enabled TLS versions.",
    ),
    Definition(
        name="ssl.key.password",
        type=ConfigType.PASSWORD,
        default=None,
        is_read_only=True,
        documentation="The password of the broker's private key. Never shown.",
    ),
)
