"""`-X NAME=VALUE`: options of the client, by their names here or in Kafka's clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, get_type_hints

import click

from ottla.cli.arguments import pairs
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ottla.core.closest import closest
from ottla.core.config_values import convert
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_KAFKA_NAMES: Final = {
    "batch_size": "producer_max_bytes",
    "client_rack": "rack",
    "compression_type": "compression",
    "enable_auto_commit": "auto_commit",
    "enable_idempotence": "idempotence",
    "fetch_max_wait_ms": "consumer_max_wait_ms",
    "fetch_min_bytes": "consumer_min_bytes",
    "linger_ms": "producer_batch_timeout_ms",
    "max_in_flight_requests_per_connection": "max_in_flight",
    "max_partition_fetch_bytes": "consumer_max_bytes",
}
_NOT_AS_TEXT: Final = frozenset({"security", "partitioner", "group", "ordered"})

_UNUSED: Final = {"Security": Any, "Callable": Callable, "Partitioner": Any}
"""Types of options that cannot be given as text, which the module imports for type checkers only."""


class ClientChoices(NamedTuple):
    client: dict[str, Any]
    other: dict[str, Any]
    """Options of the producer or consumer."""


def with_client_options(command: Decorated) -> Decorated:
    return click.option(
        "-X",
        "client_options",
        metavar="NAME=VALUE",
        multiple=True,
        help="Client option, such as isolation.level=read_committed; may be repeated. See docs/client.md.",
    )(command)


def client_choices(given: Iterable[str], kind: type[ProducerConfig | ConsumerConfig]) -> ClientChoices:
    """The options for the client, and for its producer or consumer."""
    choices = ClientChoices({}, {})
    for name, text in pairs("-X", given).items():
        plain = name.replace(".", "_").replace("-", "_")
        field = _KAFKA_NAMES.get(plain, plain)
        for config, found in ((ClientConfig, choices.client), (kind, choices.other)):
            if field in _names(config):
                found[field] = _value(config, name, field, text)
                break
        else:
            raise _unknown(name, plain, kind)
    return choices


def _names(config: type) -> set[str]:
    return {field.name for field in fields(config)} - _NOT_AS_TEXT


def _value(config: type, name: str, field: str, text: str) -> object:
    if field == "acks":
        # 0 and 1 are numbers for the client, "all" and Kafka's -1 are text.
        return {"0": 0, "1": 1, "-1": "all"}.get(text, text)
    try:
        return convert(field, get_type_hints(config, localns=_UNUSED)[field], text, is_text=True)
    except ValueError as wrong:
        raise ConfigError(f"-X {name}: {wrong}") from None


def _unknown(name: str, plain: str, kind: type) -> ConfigError:
    known = _names(ClientConfig) | _names(kind)
    known |= {kafka for kafka, here in _KAFKA_NAMES.items() if here in known}
    meant = closest(plain, sorted(known))
    hint = "" if meant is None else f" (did you mean {meant.replace('_', '.') if '.' in name else meant}?)"
    return ConfigError(f"-X: unknown client option {name}{hint}; docs/client.md lists them")
