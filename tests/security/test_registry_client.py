"""The client's `Registry` at a registry with TLS and logins."""

from __future__ import annotations

import pickle
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from ottla.core.errors import ConfigError
from ottla.schema import AnyDeserializer, AvroSerializer, Registry, RegistryRefused, RegistryUnavailable

from .certificates import Authority
from .securing import PASSWORDS, secured
from .test_rest import Served, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with (
        secured(tmp_path_factory.mktemp("registry"), acls=True, super_users=("User:admin",)) as broker,
        served(broker, tls=True, client_certificates="requested") as http,
    ):
        yield http


def registry(rest: Served, *, login: str = "", **options: Any) -> Registry:
    url = f"https://{login}localhost:{urlsplit(rest.url).port}/schema-registry"
    return Registry(url, **{"ca_file": str(rest.broker.authority.cert), **options})


def test_each_kind_of_login_registers_and_reads(rest: Served) -> None:
    files = rest.broker.authority.client("admin")
    password = PASSWORDS["admin"]
    clients = {
        "auth": registry(rest, auth=("admin", password)),
        "URL": registry(rest, login=f"admin:{password}@"),
        "token": registry(rest, token=rest.broker.issuer.token("admin")),
        "function": registry(rest, token=lambda: rest.broker.issuer.token("admin")),
        "certificate": registry(rest, cert_file=str(files.cert), key_file=str(files.key)),
    }
    for name, client in clients.items():
        data = AvroSerializer(client, '"string"')(name, f"topic-{name}")
        assert AnyDeserializer(client)(data) == name
        assert f"topic-{name}-value" in client.subjects()
        assert password not in f"{client!r} {client.url}"


def test_a_function_is_called_for_a_fresh_token_with_each_request(rest: Served) -> None:
    tokens = [rest.broker.issuer.token("admin", exp=1), rest.broker.issuer.token("admin")]
    client = registry(rest, token=lambda: tokens.pop(0))
    with pytest.raises(RegistryRefused, match="40101"):
        client.subjects()
    client.subjects()
    assert not tokens


def test_a_registry_keeps_its_login_when_it_is_pickled(rest: Served) -> None:
    client = registry(rest, auth=("admin", PASSWORDS["admin"]))
    assert pickle.loads(pickle.dumps(client)).subjects() == client.subjects()  # noqa: S301


@pytest.mark.parametrize("login", [{}, {"auth": ("admin", "wrong")}, {"token": "a.b.c"}])
def test_a_missing_or_wrong_login_is_refused(rest: Served, login: dict[str, Any]) -> None:
    with pytest.raises(RegistryRefused, match="40101"):
        registry(rest, **login).subjects()


def test_a_user_without_acls_is_refused(rest: Served) -> None:
    with pytest.raises(RegistryRefused, match="40301"):
        AvroSerializer(registry(rest, auth=("ann", PASSWORDS["ann"])), '"string"')("x", "not-anns")


def test_an_unknown_authority_is_not_trusted(rest: Served, tmp_path: Path) -> None:
    for ca_file in (None, str(Authority(tmp_path, "stranger").cert)):
        with pytest.raises(
            RegistryUnavailable, match=r"cannot reach the schema registry at https://.*certificate verify"
        ):
            registry(rest, ca_file=ca_file).subjects()


def test_files_that_cannot_be_read_are_named_at_once(rest: Served, tmp_path: Path) -> None:
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    for options in ({"ca_file": "missing.pem"}, {"ca_file": str(nonsense)}, {"cert_file": str(nonsense)}):
        named = re.escape(next(iter(options.values())))
        with pytest.raises(ConfigError, match=f"cannot load the certificates for the schema registry from {named}"):
            registry(rest, **options)
