"""Whether a topic can be exposed over DMQP, and its preparation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ottla.broker.interfaces.in_process_requests import LocalClient, raise_refusal
from ottla.core.errors import InvalidRequest
from ottla.dmqp.frame import MAX_PAYLOAD_BYTES
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.topics import TopicState

_TOPIC: Final = 2
_SET: Final = 0
_ROOM_AROUND_PAYLOAD: Final = 1024
_LEAST_MESSAGE_BYTES: Final = MAX_PAYLOAD_BYTES + _ROOM_AROUND_PAYLOAD
"""The size of a batch with the largest payload, slightly above Kafka's default limit."""


async def prepare(broker: Broker, state: TopicState, principal: str) -> None:
    if state.entry.is_internal:
        raise InvalidRequest(f"{state.name} is an internal topic")
    if "compact" in state.entry.configs.get("cleanup.policy", ""):
        raise InvalidRequest(f"{state.name} is compacted, which requires keys; DMQP messages have none")
    if state.config.log.max_message_bytes < _LEAST_MESSAGE_BYTES:
        config = AlterableConfig(name="max.message.bytes", config_operation=_SET, value=str(_LEAST_MESSAGE_BYTES))
        resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=state.name, configs=(config,))
        request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
        [result] = (await LocalClient(broker, "dmqp", ("127.0.0.1", 0), principal).ask(request)).responses
        raise_refusal(result.error_code, result.error_message)
