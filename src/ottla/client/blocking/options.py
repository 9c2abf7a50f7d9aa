"""Options of the client and of a producer or consumer, combined."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from ottla.client.config import ClientConfig
from ottla.client.options import ClientOptions, ConsumerOptions, ProducerOptions
from ottla.core.closest import closest

if TYPE_CHECKING:
    from collections.abc import Mapping


class BlockingProducerOptions(ClientOptions, ProducerOptions, total=False):
    """Every option of a client and of a producer."""


class BlockingConsumerOptions(ClientOptions, ConsumerOptions, total=False):
    """Every option of a client and of a consumer."""


def split(options: Mapping[str, Any], config: type[Any]) -> tuple[ClientOptions, dict[str, Any]]:
    """The client's options, and the others, which must belong to this config."""
    of_client = {field.name for field in fields(ClientConfig)}
    of_config = {field.name for field in fields(config)}
    for name in options:
        if name not in of_client | of_config:
            likely = closest(name, of_client | of_config)
            raise TypeError(f"unknown option {name!r}" + (f"; did you mean {likely!r}?" if likely else ""))
    client_options = {name: value for name, value in options.items() if name in of_client}
    return cast("ClientOptions", client_options), {
        name: value for name, value in options.items() if name not in of_client
    }
