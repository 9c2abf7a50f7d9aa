"""InitializeShareGroupState (83), ReadShareGroupState (84), WriteShareGroupState (85), DeleteShareGroupState (86) and
ReadShareGroupStateSummary (87): requests between brokers about the state of share groups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.broker.share import state_answers

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from ottla.broker.broker import Broker
    from ottla.broker.requests.context import Context
    from ottla.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse
    from ottla.wire.messages.initialize_share_group_state import (
        InitializeShareGroupStateRequest,
        InitializeShareGroupStateResponse,
    )
    from ottla.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse
    from ottla.wire.messages.read_share_group_state_summary import (
        ReadShareGroupStateSummaryRequest,
        ReadShareGroupStateSummaryResponse,
    )
    from ottla.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse


def initialize_share_group_state(
    broker: Broker, request: InitializeShareGroupStateRequest, _context: Context
) -> Coroutine[object, object, InitializeShareGroupStateResponse]:
    return state_answers.initialize(broker, request)


def read_share_group_state(
    broker: Broker, request: ReadShareGroupStateRequest, _context: Context
) -> Coroutine[object, object, ReadShareGroupStateResponse]:
    return state_answers.read(broker, request)


def write_share_group_state(
    broker: Broker, request: WriteShareGroupStateRequest, _context: Context
) -> Coroutine[object, object, WriteShareGroupStateResponse]:
    return state_answers.write(broker, request)


def delete_share_group_state(
    broker: Broker, request: DeleteShareGroupStateRequest, _context: Context
) -> Coroutine[object, object, DeleteShareGroupStateResponse]:
    return state_answers.delete(broker, request)


def read_share_group_state_summary(
    broker: Broker, request: ReadShareGroupStateSummaryRequest, _context: Context
) -> Coroutine[object, object, ReadShareGroupStateSummaryResponse]:
    return state_answers.summary(broker, request)
