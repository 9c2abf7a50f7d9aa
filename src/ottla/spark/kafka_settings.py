"""The `kafka.*` options of Spark's Kafka connector as options of our client. Pure rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from ottla.client.security import Security
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.client.options import ClientOptions, ConsumerOptions
    from ottla.client.security import Mechanism

_CLIENT_TIMES: Final = {
    "request.timeout.ms": "request_timeout_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
}
_REFUSED: Final = {
    "auto.offset.reset": "set startingOffsets instead",
    "enable.auto.commit": "Spark keeps the offsets in its checkpoint",
    "key.deserializer": "keys are bytes; decode them with functions of Spark",
    "value.deserializer": "values are bytes; decode them with functions of Spark",
    "key.serializer": "give a key column of bytes or text",
    "value.serializer": "give a value column of bytes or text",
    "interceptor.classes": "there is no Java here to run them",
}
_JAAS_FIELD: Final = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def client_options(kafka: Mapping[str, str]) -> ClientOptions:
    """The client's options; `kafka` has the names without their prefix."""
    for name, instead in _REFUSED.items():
        if name in kafka:
            raise ConfigError(f"kafka.{name} cannot be set: {instead}")
    options: ClientOptions = {}
    for theirs, ours in _CLIENT_TIMES.items():
        if theirs in kafka:
            options[ours] = whole_number(f"kafka.{theirs}", kafka[theirs])  # type: ignore[literal-required]
    if "client.id" in kafka:
        options["client_id"] = kafka["client.id"]
    options["security"] = _security(kafka)
    return options


def consumer_options(kafka: Mapping[str, str]) -> ConsumerOptions:
    options: ConsumerOptions = {}
    level = kafka.get("isolation.level", "read_uncommitted")
    if level not in ("read_uncommitted", "read_committed"):
        raise ConfigError(f"kafka.isolation.level must be read_uncommitted or read_committed, got {level}")
    options["isolation_level"] = level  # type: ignore[typeddict-item]
    if "check.crcs" in kafka:
        options["check_crcs"] = truth("kafka.check.crcs", kafka["check.crcs"])
    if "max.partition.fetch.bytes" in kafka:
        name = "max.partition.fetch.bytes"
        options["consumer_max_bytes"] = whole_number(f"kafka.{name}", kafka[name])
    if "client.rack" in kafka:
        options["rack"] = kafka["client.rack"]
    return options


def is_committed_only(kafka: Mapping[str, str]) -> bool:
    return consumer_options(kafka)["isolation_level"] == "read_committed"


def whole_number(option: str, text: str, least: int = 1) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{option} must be a whole number of at least {least}, got {text!r}")
    return number


def truth(option: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConfigError(f"{option} must be true or false, got {text!r}")
    return text.lower() == "true"


def _security(kafka: Mapping[str, str]) -> Security | None:
    protocol = kafka.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise ConfigError(f"kafka.security.protocol must be one of {', '.join(_PROTOCOLS)}, got {protocol}")
    if protocol == "PLAINTEXT":
        return None
    has_tls, has_sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    mechanism = kafka.get("sasl.mechanism", "").upper() or None
    if has_sasl and mechanism is None:
        raise ConfigError(f"kafka.security.protocol {protocol} needs kafka.sasl.mechanism, such as SCRAM-SHA-512")
    login = _jaas(kafka) if has_sasl else {}
    return Security(
        tls=has_tls,
        ca_file=_pem(kafka, "truststore") if has_tls else None,
        cert_file=_pem(kafka, "keystore") if has_tls else None,
        key_password=kafka.get("ssl.key.password") if has_tls and "ssl.keystore.location" in kafka else None,
        check_hostname=not has_tls or kafka.get("ssl.endpoint.identification.algorithm", "https") != "",
        mechanism=cast("Mechanism | None", mechanism if has_sasl else None),
        username=login.get("username"),
        password=login.get("password"),
    )


def _pem(kafka: Mapping[str, str], store: str) -> str | None:
    location = kafka.get(f"ssl.{store}.location")
    kind = kafka.get(f"ssl.{store}.type", "JKS")
    if location is not None and kind.upper() != "PEM":
        raise ConfigError(
            f"kafka.ssl.{store}.type must be PEM, got {kind}: Java's own key stores cannot be read without Java"
        )
    return location


def _jaas(kafka: Mapping[str, str]) -> dict[str, str]:
    text = kafka.get("sasl.jaas.config")
    if text is None:
        raise ConfigError('SASL needs kafka.sasl.jaas.config with username="…" password="…"')
    found = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _JAAS_FIELD.findall(text)}
    if "username" not in found or "password" not in found:
        raise ConfigError('kafka.sasl.jaas.config must have username="…" and password="…"')
    return found
