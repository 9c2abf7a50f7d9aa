"""Every API: the ACLs it requires, its error codes, and that it requires nothing else."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.authorization.authorizer import Authorizer
from ottla.broker.authorization.guarding import guarded
from ottla.broker.authorization.refusals import CODES, refusal
from ottla.broker.metrics import error_codes
from ottla.broker.requests.api_table import SERVED
from ottla.broker.requests.context import Context
from ottla.core.errors import ErrorCode
from ottla.net.security_config import SecurityConfig
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType
from ottla.wire.apis import APIS, Api, response_type
from ottla.wire.codec import encode_response
from ottla.wire.header import RequestHeader

from .api_samples import SAMPLES, TOPIC_ID, Needed, Sample

BROKER: Any = SimpleNamespace(
    topics=SimpleNamespace(
        by_id={TOPIC_ID: SimpleNamespace(name="orders")}, by_name={"orders": SimpleNamespace(name="orders")}
    ),
    config=SimpleNamespace(auto_create_topics=True),
)
NO_ANSWER_NEEDED = {"AlterUserScramCredentials", "AlterClientQuotas", "DescribeShareGroupOffsets"}
"""APIs whose sample requires nothing, or whose errors are part of the handler's response."""


def names(sample: Sample) -> str:
    return f"{sample.request.API.name} v{sample.version} {len(sample.needed)}"


def acl(needed: Needed, permission: AclPermission = AclPermission.ALLOW, principal: str = "User:ann") -> Acl:
    operation, (kind, name) = needed
    return Acl(kind, name, PatternType.LITERAL, principal, "*", operation, permission)


class Asked:
    """A handler that records requests and answers with empty responses."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    def __call__(self, _broker: Any, request: Any, context: Any) -> Any:
        self.requests.append(request)
        return refusal(response_type(request.API), None, ErrorCode.NONE, context.version)


def ask(sample: Sample, acls: frozenset[Acl], **config: Any) -> tuple[Asked, Any]:
    authorizer = Authorizer(SecurityConfig(acls=True, **config), lambda: acls)
    client: Any = SimpleNamespace(principal="User:ann", groups=(), peer=("10.0.0.1", 1))
    handler = Asked()
    api = sample.request.API
    checked = guarded(SERVED[api.key].rule, authorizer, handler)
    header = RequestHeader(api, sample.version, 0, "c", 0)
    answer: Any = checked(BROKER, sample.request, Context(header, client))
    if asyncio.iscoroutine(answer):
        raise TypeError("the handler answers at once")
    if answer is not None:
        encode_response(header, answer)
    return handler, answer


def test_every_api_is_in_the_table_and_has_a_sample() -> None:
    assert set(SERVED) == set(APIS)
    assert {sample.request.API.key for sample in SAMPLES} == set(APIS)


@pytest.mark.parametrize("sample", SAMPLES, ids=names)
def test_a_sample_requires_the_acls_of_the_table(sample: Sample) -> None:
    told = SERVED[sample.request.API.key].rule.operations
    assert {(operation, kind) for operation, (kind, _) in sample.needed} <= told


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_acl_of_the_table_is_required_by_some_sample(api: Api) -> None:
    asked = {
        (operation, kind) for sample in SAMPLES if api == sample.request.API for operation, (kind, _) in sample.needed
    }
    # Alternatives and filters of the response have separate tests.
    elsewhere = {
        "Metadata": {(AclOperation.CREATE, ResourceType.CLUSTER)},
        "CreateTopics": {
            (AclOperation.CREATE, ResourceType.CLUSTER),
            (AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC),
        },
        "InitProducerId": {(AclOperation.WRITE, ResourceType.TOPIC)},
        "OffsetFetch": {(AclOperation.DESCRIBE, ResourceType.TOPIC)},
        "ListGroups": {(AclOperation.DESCRIBE, ResourceType.CLUSTER), (AclOperation.DESCRIBE, ResourceType.GROUP)},
        "ConsumerGroupDescribe": {(AclOperation.DESCRIBE, ResourceType.TOPIC)},
        "ShareGroupDescribe": {(AclOperation.DESCRIBE, ResourceType.TOPIC)},
        "DescribeTransactions": {(AclOperation.DESCRIBE, ResourceType.TOPIC)},
        "ListTransactions": {(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID)},
        # Asked for by the handlers, for tokens of others: tests/security/test_delegation_tokens.py.
        "CreateDelegationToken": {(AclOperation.CREATE_TOKENS, ResourceType.USER)},
        "DescribeDelegationToken": {
            (AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN),
            (AclOperation.DESCRIBE_TOKENS, ResourceType.USER),
        },
    }
    assert SERVED[api.key].rule.operations == asked | elsewhere.get(api.name, set())


@pytest.mark.parametrize("sample", SAMPLES, ids=names)
def test_with_all_acls_the_handler_gets_the_unmodified_request(sample: Sample) -> None:
    handler, _ = ask(sample, frozenset(map(acl, sample.needed)))
    assert handler.requests == [sample.request]


@pytest.mark.parametrize("sample", SAMPLES, ids=names)
def test_without_any_one_acl_it_is_refused_with_kafkas_code(sample: Sample) -> None:
    for missing in sample.needed:
        rest = frozenset(acl(needed) for needed in sample.needed if needed != missing)
        handler, answer = ask(sample, rest)
        assert sample.request not in handler.requests
        if sample.request.API.name not in NO_ANSWER_NEEDED:
            assert (sample.code or CODES[missing[1][0]]) in set(error_codes(answer))


@pytest.mark.parametrize("sample", SAMPLES, ids=names)
def test_an_authorization_error_can_be_encoded_in_every_version(sample: Sample) -> None:
    api = sample.request.API
    for version in range(api.first, api.last + 1):
        ask(sample._replace(version=version), frozenset())


@pytest.mark.parametrize("sample", SAMPLES, ids=names)
def test_deny_takes_precedence_over_allow(sample: Sample) -> None:
    for denied in sample.needed:
        allowed = {acl(needed) for needed in sample.needed}
        handler, _ = ask(sample, frozenset(allowed | {acl(denied, AclPermission.DENY, "User:*")}))
        assert sample.request not in handler.requests


@pytest.mark.parametrize("sample", SAMPLES, ids=names)
def test_a_super_user_needs_nothing(sample: Sample) -> None:
    handler, _ = ask(sample, frozenset(), super_users=("User:ann",))
    assert handler.requests == [sample.request]


@pytest.mark.parametrize("sample", SAMPLES, ids=names)
def test_acls_of_another_user_do_not_apply(sample: Sample) -> None:
    handler, _ = ask(sample, frozenset(acl(needed, principal="User:bob") for needed in sample.needed))
    assert (sample.request in handler.requests) == (not sample.needed)


@pytest.mark.parametrize("name", ["JoinGroup", "SyncGroup", "ShareFetch"])
def test_a_delayed_response_is_refused_if_the_right_was_revoked(name: str) -> None:
    sample = next(one for one in SAMPLES if one.request.API.name == name)
    acls = [frozenset(map(acl, sample.needed))]
    authorizer = Authorizer(SecurityConfig(acls=True), lambda: acls[0])
    response = response_type(sample.request.API)

    async def handler(*_: object) -> Any:
        acls[0] = frozenset()
        return refusal(response, sample.request, ErrorCode.NONE, sample.version)

    checked = guarded(SERVED[sample.request.API.key].rule, authorizer, handler)
    header = RequestHeader(sample.request.API, sample.version, 0, "c", 0)
    client: Any = SimpleNamespace(principal="User:ann", groups=(), peer=("10.0.0.1", 1))
    answer = asyncio.run(checked(BROKER, sample.request, Context(header, client)))
    assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
