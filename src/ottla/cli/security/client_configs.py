"""Client configurations for a secured broker, one per client library."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

MECHANISM: Final = "SCRAM-SHA-512"


@dataclass(frozen=True, slots=True)
class Access:
    address: str
    ca_file: Path
    user: str
    password: str = field(repr=False)


def librdkafka(access: Access) -> str:
    return _lines(
        {
            "bootstrap.servers": access.address,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(access.ca_file),
            "sasl.mechanism": MECHANISM,
            "sasl.username": access.user,
            "sasl.password": access.password,
        }
    )


def java(access: Access) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'{module} required username="{access.user}" password="{access.password}";'
    return _lines(
        {
            "bootstrap.servers": access.address,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(access.ca_file),
            "sasl.mechanism": MECHANISM,
            "sasl.jaas.config": login,
        }
    )


def python(access: Access) -> str:
    return f"""import ottla
from ottla.client import Security

security = Security(
    tls=True,
    ca_file={str(access.ca_file)!r},
    mechanism={MECHANISM!r},
    username={access.user!r},
    password={access.password!r},
)
producer = ottla.Producer({access.address!r}, security=security)"""


def _lines(settings: dict[str, str]) -> str:
    return "\n".join(f"{name}={value}" for name, value in settings.items())
