"""ACLs: Kafka's rules, and an index that decides as if it looked at every one of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.authorization.acl_index import AclIndex, Asker
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType

ANN = Asker(frozenset({"User:ann"}), "10.0.0.1")
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
TOPIC = ResourceType.TOPIC
READ, WRITE, DESCRIBE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.ALL


def acl(
    name: str = "orders",
    operation: AclOperation = READ,
    permission: AclPermission = ALLOW,
    pattern: PatternType = LITERAL,
    principal: str = "User:ann",
    host: str = "*",
) -> Acl:
    return Acl(TOPIC, name, pattern, principal, host, operation, permission)


def may(*acls: Acl, operation: AclOperation = READ, name: str = "orders", is_open: bool = False) -> bool:
    return AclIndex(acls, is_open_without=is_open).allows(ANN, operation, TOPIC, name)


def test_nothing_is_allowed_that_no_acl_allows() -> None:
    assert not may()
    assert may(acl())
    assert not may(acl(), name="order")
    assert not may(acl(), operation=WRITE)
    assert not may(acl(principal="User:bob"))
    assert not may(acl(principal="Group:ann"))


def test_everybody_and_everything() -> None:
    assert may(acl(principal="User:*"))
    assert may(acl("*"))
    assert may(acl(operation=ALL))


def test_beginnings_of_names() -> None:
    assert may(acl("ord", pattern=PREFIXED))
    assert may(acl("orders", pattern=PREFIXED))
    assert not may(acl("orders-", pattern=PREFIXED))
    assert not may(acl("*", pattern=PREFIXED))  # a star is one only where a name is literal


def test_hosts() -> None:
    assert may(acl(host="10.0.0.1"))
    assert not may(acl(host="10.0.0.2"))


@pytest.mark.parametrize("denial", [acl(permission=DENY), acl("*", ALL, DENY), acl("o", READ, DENY, PREFIXED)])
def test_a_denial_counts_before_any_permission(denial: Acl) -> None:
    assert not may(acl(), acl("*"), acl("ord", pattern=PREFIXED), denial)


def test_a_denial_elsewhere_does_not_count() -> None:
    assert may(acl(), acl(permission=DENY, host="10.9.9.9"), acl(permission=DENY, principal="User:bob"))


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_who_may_do_something_may_describe_it(operation: AclOperation) -> None:
    assert may(acl(operation=operation), operation=DESCRIBE)
    # To deny it does not deny describing.
    assert may(acl(operation=operation, permission=DENY), acl(operation=DESCRIBE), operation=DESCRIBE)


def test_who_may_alter_configs_may_see_them() -> None:
    assert may(acl(operation=AclOperation.ALTER_CONFIGS), operation=AclOperation.DESCRIBE_CONFIGS)
    assert not may(acl(operation=AclOperation.ALTER), operation=AclOperation.DESCRIBE_CONFIGS)


def test_what_no_acl_bears_on_may_be_everybodys() -> None:
    assert may(is_open=True)
    assert may(acl("other", principal="User:bob"), is_open=True)
    assert not may(acl(principal="User:bob"), is_open=True)


def test_writing_somewhere() -> None:
    def somewhere(*acls: Acl) -> bool:
        return AclIndex(acls).allows_some(ANN, WRITE, TOPIC)

    assert not somewhere()
    assert not somewhere(acl(operation=READ))
    assert somewhere(acl(operation=WRITE))
    assert somewhere(acl("o", WRITE, pattern=PREFIXED))
    assert not somewhere(acl(operation=WRITE), acl(operation=WRITE, permission=DENY))
    assert not somewhere(acl(operation=WRITE), acl("*", WRITE, DENY))
    assert not somewhere(acl(operation=WRITE), acl("o", WRITE, DENY, PREFIXED))
    assert somewhere(acl("*", WRITE), acl(operation=WRITE, permission=DENY))


NAMES = st.sampled_from(["*", "a", "ab", "abc", "b", ""])
ACLS = st.builds(
    Acl,
    st.sampled_from([TOPIC, ResourceType.GROUP]),
    NAMES.filter(bool),
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:ann", "User:bob", "User:*"]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from([READ, WRITE, DESCRIBE, ALL]),
    st.sampled_from([ALLOW, DENY]),
)


def slowly(acls: list[Acl], operation: AclOperation, name: str, *, is_open: bool) -> bool:
    """The rules, word by word."""
    bearing = [
        one
        for one in acls
        if one.resource_type is TOPIC
        and (name.startswith(one.resource_name) if one.pattern_type is PREFIXED else one.resource_name in (name, "*"))
    ]
    mine = [one for one in bearing if one.principal in ("User:ann", "User:*") and one.host in ("*", "10.0.0.1")]
    if any(one.permission is DENY and one.operation in (operation, ALL) for one in mine):
        return False
    implying = {operation, ALL} | ({READ, WRITE} if operation is DESCRIBE else set())
    if any(one.permission is ALLOW and one.operation in implying for one in mine):
        return True
    return is_open and not bearing


@given(st.lists(ACLS, max_size=8), st.sampled_from([READ, WRITE, DESCRIBE]), NAMES, st.booleans())
def test_the_index_decides_as_the_rules_do(acls: list[Acl], operation: AclOperation, name: str, is_open: bool) -> None:
    index = AclIndex(acls, is_open_without=is_open)
    assert index.allows(ANN, operation, TOPIC, name) == slowly(acls, operation, name, is_open=is_open)


USER = ResourceType.USER
ANALYST = Acl(TOPIC, "orders", LITERAL, "Role:analyst", "*", READ, ALLOW)


def member(
    principal: str, role: str = "Role:analyst", permission: AclPermission = ALLOW, pattern: PatternType = LITERAL
) -> Acl:
    return Acl(USER, role, pattern, principal, "*", ALL, permission)


def has_role(*acls: Acl, principals: tuple[str, ...] = ("User:ann",), is_open: bool = False) -> bool:
    index = AclIndex((ANALYST, *acls), is_open_without=is_open)
    return index.allows(index.asker(principals, "10.0.0.1"), READ, TOPIC, "orders")


def test_members_of_a_role_may_do_what_the_role_may() -> None:
    assert has_role(member("User:ann"))
    assert not has_role(member("User:bob"))
    assert not has_role()
    assert has_role(member("User:*"))
    assert has_role(member("User:ann", "Role:", pattern=PREFIXED))


def test_groups_of_a_token_have_rights_and_roles_as_users_do() -> None:
    assert has_role(member("Group:sales"), principals=("User:ann", "Group:sales"))
    assert not has_role(member("Group:sales"), principals=("User:ann", "Group:support"))
    assert has_role(acl(principal="Group:sales"), principals=("User:ann", "Group:sales"))


def test_a_role_may_have_roles_even_in_a_circle() -> None:
    assert has_role(
        acl("x", principal="Role:lead"),
        member("User:ann", "Role:lead"),
        member("Role:lead"),
        member("Role:analyst", "Role:lead"),
    )


def test_a_denied_membership_or_right_counts_before_those_allowed() -> None:
    assert not has_role(member("User:*"), member("User:ann", permission=DENY))
    assert not has_role(member("User:ann"), acl(permission=DENY))
    assert not has_role(acl(), member("User:ann"), acl(principal="Role:analyst", permission=DENY))


def test_only_all_operations_on_a_role_make_a_member() -> None:
    assert not has_role(Acl(USER, "Role:analyst", LITERAL, "User:ann", "*", AclOperation.CREATE_TOKENS, ALLOW))
    assert not has_role(Acl(TOPIC, "Role:analyst", LITERAL, "User:ann", "*", ALL, ALLOW))


def test_a_role_without_members_is_not_open_to_everybody() -> None:
    acls = (Acl(TOPIC, "orders", LITERAL, "Role:analyst", "*", WRITE, ALLOW),)
    index = AclIndex(acls, is_open_without=True)
    assert index.asker(["User:ann"], "10.0.0.1").principals == {"User:ann"}
