"""Authorization of cluster APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from ottla.broker.authorization.rules import CLUSTER
from ottla.broker.requests.answers import then
from ottla.broker.requests.authorized_operations import CLUSTER_OPERATIONS

if TYPE_CHECKING:
    from ottla.broker.authorization.authorizer import Authorizer
    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Handler, NowOrLater
    from ottla.broker.requests.context import Context
    from ottla.wire.messages.describe_cluster import DescribeClusterRequest


def describe_cluster(
    authorizer: Authorizer,
    handler: Handler,
    broker: Broker,
    request: DescribeClusterRequest,
    context: Context,
) -> NowOrLater:
    answer = handler(broker, request, context)
    if not request.include_cluster_authorized_operations:
        return answer
    bits = authorizer.bits(context, *CLUSTER, CLUSTER_OPERATIONS)
    return then(answer, lambda response: structs.replace(response, cluster_authorized_operations=bits))
