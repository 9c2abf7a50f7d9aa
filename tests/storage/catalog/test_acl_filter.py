from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ottla.core.errors import InvalidRequest
from ottla.storage.catalog.acl_filter import AclFilter, matches, matching
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType
from ottla.storage.catalog.rules import check_acl_filter, check_new_acl

READ = Acl(
    ResourceType.TOPIC,
    "orders",
    PatternType.LITERAL,
    "User:ann",
    "10.0.0.1",
    AclOperation.READ,
    AclPermission.ALLOW,
)
LITERAL = READ
PREFIX = replace(READ, resource_name="ord", pattern_type=PatternType.PREFIXED)
WILDCARD = replace(READ, resource_name="*")
STAR_PREFIX = replace(READ, resource_name="*", pattern_type=PatternType.PREFIXED)
OTHER = replace(READ, resource_name="payments")
EVERY = frozenset({LITERAL, PREFIX, WILDCARD, STAR_PREFIX, OTHER})

names = st.text("ab*", min_size=1, max_size=3)
acls = st.builds(
    Acl,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP]),
    names,
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:ann", "User:bob"]),
    st.sampled_from(["*", "10.0.0.1"]),
    st.sampled_from([AclOperation.READ, AclOperation.ALL]),
    st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
)


@pytest.mark.parametrize(
    ("name", "pattern_type", "expected"),
    [
        (None, PatternType.ANY, EVERY),
        (None, PatternType.MATCH, EVERY),
        (None, PatternType.LITERAL, {LITERAL, WILDCARD, OTHER}),
        (None, PatternType.PREFIXED, {PREFIX, STAR_PREFIX}),
        ("orders", PatternType.ANY, {LITERAL}),
        ("orders", PatternType.LITERAL, {LITERAL}),
        ("orders", PatternType.PREFIXED, set()),
        ("orders", PatternType.MATCH, {LITERAL, PREFIX, WILDCARD}),
        ("ord", PatternType.ANY, {PREFIX}),
        ("ord", PatternType.PREFIXED, {PREFIX}),
        ("ord", PatternType.LITERAL, set()),
        ("ord", PatternType.MATCH, {PREFIX, WILDCARD}),
        ("or", PatternType.MATCH, {WILDCARD}),
        ("*", PatternType.ANY, {WILDCARD, STAR_PREFIX}),
        ("*", PatternType.LITERAL, {WILDCARD}),
        ("*", PatternType.MATCH, {WILDCARD, STAR_PREFIX}),
    ],
)
def test_a_name_is_found_as_kafka_finds_it(name: str | None, pattern_type: PatternType, expected: set[Acl]) -> None:
    assert matching(EVERY, AclFilter(resource_name=name, pattern_type=pattern_type)) == expected


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (AclFilter(), True),
        (AclFilter(resource_type=ResourceType.TOPIC), True),
        (AclFilter(resource_type=ResourceType.GROUP), False),
        (AclFilter(principal="User:ann"), True),
        (AclFilter(principal="User:*"), False),
        (AclFilter(host="10.0.0.1"), True),
        (AclFilter(host="*"), False),
        (AclFilter(operation=AclOperation.READ), True),
        (AclFilter(operation=AclOperation.ALL), False),
        (AclFilter(permission=AclPermission.ALLOW), True),
        (AclFilter(permission=AclPermission.DENY), False),
    ],
)
def test_every_other_field_is_free_or_must_be_equal(wanted: AclFilter, is_found: bool) -> None:
    assert matches(wanted, READ) is is_found


@given(acls)
def test_the_filter_made_of_an_acl_finds_that_acl_alone(acl: Acl) -> None:
    exact = AclFilter(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission=acl.permission,
    )
    others = {
        replace(acl, resource_name=acl.resource_name + "a"),
        replace(acl, pattern_type=PatternType(7 - acl.pattern_type)),
        replace(acl, principal="User:eve"),
        replace(acl, operation=AclOperation.WRITE),
    }

    assert matching({acl, *others}, exact) == {acl}


@given(st.frozensets(acls), names)
def test_match_finds_at_least_what_the_literal_name_finds(held: frozenset[Acl], name: str) -> None:
    literal = matching(held, AclFilter(resource_name=name, pattern_type=PatternType.LITERAL))
    bearing_on_it = matching(held, AclFilter(resource_name=name, pattern_type=PatternType.MATCH))

    assert literal <= bearing_on_it
    assert {acl for acl in bearing_on_it - literal if acl.pattern_type is PatternType.LITERAL} <= {
        acl for acl in held if acl.resource_name == "*"
    }


@pytest.mark.parametrize(
    "acl",
    [
        replace(READ, resource_type=ResourceType.ANY),
        replace(READ, resource_type=ResourceType.UNKNOWN),
        replace(READ, pattern_type=PatternType.MATCH),
        replace(READ, pattern_type=PatternType.ANY),
        replace(READ, operation=AclOperation.ANY),
        replace(READ, operation=AclOperation.UNKNOWN),
        replace(READ, permission=AclPermission.ANY),
        replace(READ, resource_name=""),
        replace(READ, resource_type=ResourceType.CLUSTER),
    ],
    ids=str,
)
def test_an_acl_that_is_not_definite_is_refused(acl: Acl) -> None:
    with pytest.raises(InvalidRequest):
        check_new_acl(acl)


def test_the_cluster_has_one_name() -> None:
    check_new_acl(replace(READ, resource_type=ResourceType.CLUSTER, resource_name="kafka-cluster"))


@pytest.mark.parametrize(
    "wanted",
    [
        AclFilter(resource_type=ResourceType.UNKNOWN),
        AclFilter(pattern_type=PatternType.UNKNOWN),
        AclFilter(operation=AclOperation.UNKNOWN),
        AclFilter(permission=AclPermission.UNKNOWN),
    ],
)
def test_a_filter_with_an_unknown_code_is_refused(wanted: AclFilter) -> None:
    with pytest.raises(InvalidRequest):
        check_acl_filter(wanted)
