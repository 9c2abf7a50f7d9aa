"""ACLs: Kafka's rules, and an index that gives the same decisions as a linear scan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.authorization.acl_index import AclIndex, Requester
from ottla.storage.catalog.entries import Acl, AclOperation, AclPermission, PatternType, ResourceType

ANN = Requester(frozenset({"User:ann"}), "10.0.0.1")
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


def test_nothing_is_allowed_without_an_acl() -> None:
    assert not may()
    assert may(acl())
    assert not may(acl(), name="order")
    assert not may(acl(), operation=WRITE)
    assert not may(acl(principal="User:bob"))
    assert not may(acl(principal="Group:ann"))


def test_wildcard_principals_and_resources() -> None:
    assert may(acl(principal="User:*"))
    assert may(acl("*"))
    assert may(acl(operation=ALL))


def test_prefixed_names() -> None:
    assert may(acl("ord", pattern=PREFIXED))
    assert may(acl("orders", pattern=PREFIXED))
    assert not may(acl("orders-", pattern=PREFIXED))
    assert not may(acl("*", pattern=PREFIXED))  # a star is a wildcard only in a literal name


def test_hosts() -> None:
    assert may(acl(host="10.0.0.1"))
    assert not may(acl(host="10.0.0.2"))


@pytest.mark.parametrize("denial", [acl(permission=DENY), acl("*", ALL, DENY), acl("o", READ, DENY, PREFIXED)])
def test_a_deny_rule_takes_precedence(denial: Acl) -> None:
    assert not may(acl(), acl("*"), acl("ord", pattern=PREFIXED), denial)


def test_an_unrelated_deny_rule_is_ignored() -> None:
    assert may(acl(), acl(permission=DENY, host="10.9.9.9"), acl(permission=DENY, principal="User:bob"))


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_other_operations_imply_describe(operation: AclOperation) -> None:
    assert may(acl(operation=operation), operation=DESCRIBE)
    # Denying them does not deny describe.
    assert may(acl(operation=operation, permission=DENY), acl(operation=DESCRIBE), operation=DESCRIBE)


def test_alter_configs_implies_describe_configs() -> None:
    assert may(acl(operation=AclOperation.ALTER_CONFIGS), operation=AclOperation.DESCRIBE_CONFIGS)
    assert not may(acl(operation=AclOperation.ALTER), operation=AclOperation.DESCRIBE_CONFIGS)


def test_resources_without_acls_may_be_open_to_everyone() -> None:
    assert may(is_open=True)
    assert may(acl("other", principal="User:bob"), is_open=True)
    assert not may(acl(principal="User:bob"), is_open=True)


def test_a_write_acl_on_any_topic_allows_idempotent_producers() -> None:
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
    """A literal implementation of the rules."""
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
def test_the_index_gives_the_same_decisions_as_the_rules(
    acls: list[Acl], operation: AclOperation, name: str, is_open: bool
) -> None:
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
    return index.allows(index.requester(principals, "10.0.0.1"), READ, TOPIC, "orders")


def test_members_of_a_role_have_its_rights() -> None:
    assert has_role(member("User:ann"))
    assert not has_role(member("User:bob"))
    assert not has_role()
    assert has_role(member("User:*"))
    assert has_role(member("User:ann", "Role:", pattern=PREFIXED))


def test_groups_of_a_token_have_rights_and_roles_as_users_do() -> None:
    assert has_role(member("Group:sales"), principals=("User:ann", "Group:sales"))
    assert not has_role(member("Group:sales"), principals=("User:ann", "Group:support"))
    assert has_role(acl(principal="Group:sales"), principals=("User:ann", "Group:sales"))


def test_roles_may_be_nested_even_in_a_cycle() -> None:
    assert has_role(
        acl("x", principal="Role:lead"),
        member("User:ann", "Role:lead"),
        member("Role:lead"),
        member("Role:analyst", "Role:lead"),
    )


def test_a_denied_membership_or_right_takes_precedence() -> None:
    assert not has_role(member("User:*"), member("User:ann", permission=DENY))
    assert not has_role(member("User:ann"), acl(permission=DENY))
    assert not has_role(acl(), member("User:ann"), acl(principal="Role:analyst", permission=DENY))


def test_only_all_operations_on_a_role_make_a_member() -> None:
    assert not has_role(Acl(USER, "Role:analyst", LITERAL, "User:ann", "*", AclOperation.CREATE_TOKENS, ALLOW))
    assert not has_role(Acl(TOPIC, "Role:analyst", LITERAL, "User:ann", "*", ALL, ALLOW))


def test_a_role_without_members_is_not_open_to_everybody() -> None:
    acls = (Acl(TOPIC, "orders", LITERAL, "Role:analyst", "*", WRITE, ALLOW),)
    index = AclIndex(acls, is_open_without=True)
    assert index.requester(["User:ann"], "10.0.0.1").principals == {"User:ann"}
