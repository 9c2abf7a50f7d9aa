"""`ottla user`, `ottla acl` and `ottla quota`, against a broker with authentication."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from ottla.cli.main import program

from .securing import PASSWORDS

if TYPE_CHECKING:
    from pathlib import Path

    from .securing import Secured


def run(broker: Secured, *arguments: str, user: str = "admin", given: str | None = None) -> str:
    how = ["-b", broker.address("SASL_SSL"), "--ca-file", str(broker.authority.cert), "--sasl", "SCRAM-SHA-512"]
    runner = CliRunner(env={"OTTLA_PASSWORD": PASSWORDS[user], "OTTLA_CONFIG": None})
    done = runner.invoke(program, [*arguments, *how, "--user", user], input=given, prog_name="ottla")
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(broker: Secured, *arguments: str, user: str) -> str:
    how = ["-b", broker.address("SASL_SSL"), "--ca-file", str(broker.authority.cert), "--sasl", "SCRAM-SHA-512"]
    runner = CliRunner(env={"OTTLA_PASSWORD": PASSWORDS[user], "OTTLA_CONFIG": None})
    done = runner.invoke(program, [*arguments, *how, "--user", user], prog_name="ottla")
    assert done.exit_code == 1
    return done.output


def test_a_user_is_added_and_deleted(guarded: Secured) -> None:
    assert run(guarded, "user", "add", "eve", "--password-file", "-", given="a secret\n") == "user eve added\n"
    listed = json.loads(run(guarded, "user", "list", "-o", "json"))
    assert {"user": "eve", "mechanisms": ["SCRAM-SHA-256", "SCRAM-SHA-512"], "expires": None} in listed
    assert "eve" in run(guarded, "user", "list")
    assert run(guarded, "user", "delete", "eve", "--yes") == "user eve deleted\n"
    assert "eve" not in run(guarded, "user", "list")


def test_a_new_password_replaces_the_old_one(guarded: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    run(guarded, "user", "add", "dan", "--password-file", "-", given="first\n")
    run(guarded, "acl", "add", "User:dan", "--allow", "describe", "--cluster")
    monkeypatch.setitem(PASSWORDS, "dan", "first")
    run(guarded, "user", "list", user="dan")
    run(guarded, "user", "password", "dan", "--password-file", "-", given="second\n")
    assert "rejected the login" in refused(guarded, "user", "list", user="dan")
    monkeypatch.setitem(PASSWORDS, "dan", "second")
    run(guarded, "user", "list", user="dan")


def test_duplicate_users_and_passwords_of_unknown_users_are_refused(guarded: Secured) -> None:
    for arguments, why in ((("user", "add", "ann"), "already exists"), (("user", "password", "nobody"), "there is no")):
        how = ["-b", guarded.address("SASL_SSL"), "--ca-file", str(guarded.authority.cert), "--sasl", "SCRAM-SHA-512"]
        runner = CliRunner(env={"OTTLA_PASSWORD": PASSWORDS["admin"]})
        done = runner.invoke(program, [*arguments, "--password-file", "-", *how, "--user", "admin"], input="x\n")
        assert done.exit_code == 1
        assert why in done.output


def test_acls_are_added_listed_and_deleted(guarded: Secured) -> None:
    added = run(guarded, "acl", "add", "User:bob", "--consumer", "--topic", "cli-", "--prefixed", "--group", "cli")
    assert added == (
        "added: allow User:bob to read topic cli-*\n"
        "added: allow User:bob to describe topic cli-*\n"
        "added: allow User:bob to read group cli*\n"
    )
    bearing = json.loads(run(guarded, "acl", "list", "--topic", "cli-orders", "-o", "json"))
    assert [(one["operation"], one["name"], one["pattern"]) for one in bearing] == [
        ("read", "cli-", "prefixed"),
        ("describe", "cli-", "prefixed"),
    ]
    assert run(guarded, "acl", "delete", "--principal", "User:bob", "--yes") == "deleted: 3\n"
    assert run(guarded, "acl", "delete", "--principal", "User:bob", "--yes") == "no ACL matches\n"


def test_quotas_are_set_listed_and_deleted(guarded: Secured) -> None:
    run(guarded, "quota", "set", "user=ann", "--producer-byte-rate", "1000000")
    run(guarded, "quota", "set", "user=ann", "--request-percentage", "12.5")
    run(guarded, "quota", "set", "user", "client-id=etl", "--consumer-byte-rate", "5000000")
    run(guarded, "quota", "set", "ip=10.0.0.7", "--connection-creation-rate", "10")

    assert json.loads(run(guarded, "quota", "list", "-o", "json")) == [
        {"of": {"ip": "10.0.0.7"}, "connection_creation_rate": 10.0},
        {"of": {"client-id": "etl", "user": None}, "consumer_byte_rate": 5000000.0},
        {"of": {"user": "ann"}, "producer_byte_rate": 1000000.0, "request_percentage": 12.5},
    ]
    _, by_address, by_both, by_user = run(guarded, "quota", "list").splitlines()
    assert by_address.split() == ["ip=10.0.0.7", "-", "-", "-", "10"]
    assert by_both.split() == ["user", "client-id=etl", "-", "5000000", "-", "-"]
    assert by_user.split() == ["user=ann", "1000000", "-", "12.5", "-"]

    assert run(guarded, "quota", "delete", "user=ann", "--yes") == "quota of user=ann deleted\n"
    run(guarded, "quota", "delete", "client-id=etl", "user", "--yes")
    run(guarded, "quota", "delete", "ip=10.0.0.7", "--yes")
    assert json.loads(run(guarded, "quota", "list", "-o", "json")) == []
    assert "there is no quota" in refused(guarded, "quota", "delete", "user=ann", "--yes", user="admin")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["group=x", "--producer-byte-rate", "1"], "user=NAME, client-id=NAME or ip=ADDRESS"),
        (["user=", "--producer-byte-rate", "1"], "got 'user='"),
        (["user=ann", "user=bob", "--producer-byte-rate", "1"], "user is given twice"),
        (["user=ann"], "nothing to set"),
    ],
)
def test_an_invalid_quota_is_refused_before_connecting(arguments: list[str], why: str) -> None:
    done = CliRunner().invoke(program, ["quota", "set", *arguments, "-b", "127.0.0.1:1"], prog_name="ottla")
    assert done.exit_code == 2
    assert why in done.output


def test_a_user_with_two_mechanisms_is_audited_once(guarded: Secured) -> None:
    run(guarded, "user", "add", "zoe", "--password-file", "-", given="a secret\n")
    changes = [one for one in guarded.audit() if one.get("api") == "AlterUserScramCredentials"]
    assert changes[-1]["names"] == ["zoe"]


def test_a_denied_command_says_so(guarded: Secured) -> None:
    assert "CLUSTER_AUTHORIZATION_FAILED" in refused(guarded, "user", "list", user="ann")
    assert "CLUSTER_AUTHORIZATION_FAILED" in refused(guarded, "acl", "list", user="ann")
    assert "CLUSTER_AUTHORIZATION_FAILED" in refused(guarded, "quota", "list", user="ann")


def test_the_first_user_is_added_while_no_broker_runs(tmp_path: Path) -> None:
    arguments = ["user", "add", "admin", "--data-dir", str(tmp_path / "data"), "--password-file", "-"]
    done = CliRunner().invoke(program, arguments, input="secret\n")
    assert (done.exit_code, done.stdout) == (0, "user admin added\n")
    assert b"secret" not in (tmp_path / "data" / "catalog.sqlite").read_bytes()


def test_a_role_gives_its_members_its_rights_until_it_is_revoked(guarded: Secured) -> None:
    run(guarded, "topic", "create", "offers")
    run(guarded, "acl", "add", "Role:clerk", "--allow", "describe", "--topic", "offers")
    assert "offers" not in run(guarded, "topic", "list", user="ann")
    assert run(guarded, "role", "grant", "clerk", "User:ann", "Group:staff") == (
        "granted role clerk to User:ann\ngranted role clerk to Group:staff\n"
    )
    assert "offers" in run(guarded, "topic", "list", user="ann")
    [listed] = json.loads(run(guarded, "role", "list", "-o", "json"))
    assert listed == {
        "role": "clerk",
        "members": ["Group:staff", "User:ann"],
        "rights": ["allow Role:clerk to describe topic offers"],
    }
    assert run(guarded, "role", "revoke", "clerk", "User:ann") == "revoked role clerk from User:ann\n"
    assert "offers" not in run(guarded, "topic", "list", user="ann")
    assert run(guarded, "role", "delete", "clerk", "--yes") == "deleted role clerk\n"
    assert json.loads(run(guarded, "role", "list", "-o", "json")) == []


def test_wrong_uses_of_roles_say_what_to_do(guarded: Secured) -> None:
    assert "does not have the role clerk" in refused(guarded, "role", "revoke", "clerk", "User:ann", user="admin")
    assert "there is no role clerk" in refused(guarded, "role", "delete", "clerk", "--yes", user="admin")
    assert "such as User:ann" in refused(guarded, "role", "grant", "clerk", "ann", user="admin")
