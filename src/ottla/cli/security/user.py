"""`ottla user`: users with passwords."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.confirming import confirm, with_yes_option
from ottla.cli.connecting import reach_from, with_broker_choice, with_broker_options, with_config_option
from ottla.cli.durations import Duration, time_text
from ottla.cli.output import show_rows, with_output_option
from ottla.cli.summaries import CommandGroup
from ottla.core.errors import OttlaError
from ottla.core.security import ScramMechanism

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ottla.cli.connecting import Reach
    from ottla.client import Client
    from ottla.client.admin.users import ScramInfo

_MECHANISMS: Final = {one.name.replace("_", "-"): one for one in ScramMechanism}
_COLUMNS: Final = ("user", "mechanisms", "expires")


@click.group(cls=CommandGroup)
def user() -> None:
    """List and change users with passwords.

    Passwords are stored as salted SCRAM verifiers only; PLAIN is checked against the same verifiers.
    """


def _with_password_options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        click.option(
            "--password-file",
            metavar="FILE",
            help="Read the password from this file, - for standard input [default: prompt].",
        ),
        click.option("--iterations", type=int, default=4096, show_default=True, help="SCRAM iterations."),
        click.option(
            "--mechanism",
            "mechanisms",
            type=click.Choice(list(_MECHANISMS), case_sensitive=False),
            multiple=True,
            help="SCRAM mechanism; may be repeated. [default: both]",
        ),
        click.option(
            "--expires-in",
            type=Duration(),
            help="Let the password expire after this time, such as 90d [default: security.password_max_age_ms].",
        ),
    ):
        command = option(command)
    return command


@user.command(
    "list",
    epilog="""\b
Examples:
  ottla user list
  ottla user list -o json --ca-file ca.pem --sasl SCRAM-SHA-512 --user admin
""",
)
@with_output_option
@with_broker_options
def list_users(*, reach: Reach, output: str) -> None:
    """List users."""
    rows = [_row(name, infos) for name, infos in reach.run(lambda client: client.admin.list_users()).items()]
    if output == "table":
        rows = [{**row, "mechanisms": ", ".join(row["mechanisms"]), "expires": row["expires"] or ""} for row in rows]
    show_rows(rows, _COLUMNS, output)


def _row(name: str, infos: Sequence[ScramInfo]) -> dict[str, Any]:
    times = [info.expires_ms for info in infos if info.expires_ms is not None]
    mechanisms = [info.mechanism.name.replace("_", "-") for info in infos]
    return {"user": name, "mechanisms": mechanisms, "expires": time_text(min(times)) if times else None}


@user.command(
    epilog="""\b
Examples:
  ottla user add ann
  ottla user add ann --password-file secret.txt --mechanism SCRAM-SHA-512
  ottla user add contractor --expires-in 90d
  ottla user add admin --data-dir /var/lib/ottla
""",
)
@click.argument("name")
@_with_password_options
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Add the user to this data folder while no broker runs (for the first user).",
)
@with_broker_choice
@with_config_option
def add(  # noqa: PLR0913
    name: str,
    *,
    mechanisms: Sequence[str],
    iterations: int,
    password_file: str | None,
    expires_in: float | None,
    data_dir: Path | None,
    **options: Any,
) -> None:
    """Add a user."""
    chosen = [_MECHANISMS[one.upper()] for one in mechanisms] or list(ScramMechanism)
    if data_dir is not None:
        password = _password(name, password_file)
        _add_offline(options["config_file"], data_dir, name, password, chosen, iterations, _expires_ms(expires_in))
    else:
        reach = reach_from(options)
        password = _password(name, password_file)

        async def ask(client: Client) -> None:
            if name in await client.admin.list_users():
                raise OttlaError(f"user {name!r} already exists; change the password with: ottla user password")
            await _set_password(client, name, password, chosen, iterations, _expires_ms(expires_in))

        reach.run(ask)
    click.echo(f"user {name} added")


@user.command(
    epilog="""\b
Examples:
  ottla user password ann
  echo "$NEW" | ottla user password ann --password-file -
""",
)
@click.argument("name")
@_with_password_options
@with_broker_options
def password(  # noqa: PLR0913
    name: str,
    *,
    reach: Reach,
    mechanisms: Sequence[str],
    iterations: int,
    password_file: str | None,
    expires_in: float | None,
) -> None:
    """Change a user's password. Without --expires-in it does not keep an earlier expiry."""
    new = _password(name, password_file)
    chosen = [_MECHANISMS[one.upper()] for one in mechanisms]

    async def ask(client: Client) -> None:
        known = (await client.admin.list_users()).get(name)
        if known is None:
            raise OttlaError(f"there is no user {name!r}; create it with: ottla user add")
        mechanisms = chosen or [one.mechanism for one in known]
        await _set_password(client, name, new, mechanisms, iterations, _expires_ms(expires_in))

    reach.run(ask)
    click.echo(f"password of {name} changed")


@user.command(
    epilog="""\b
Examples:
  ottla user expire ann
  ottla user expire ann --in 30d
  ottla user expire ann --never
""",
)
@click.argument("name")
@click.option("--in", "after", type=Duration(), help="After this time, such as 30d [default: at once].")
@click.option("--never", is_flag=True, help="Do not let it expire.")
@with_broker_options
def expire(name: str, *, after: float | None, never: bool, reach: Reach) -> None:
    """Change when a user's password expires: at once, unless --in or --never is given. Open connections end, too."""
    if never and after is not None:
        raise OttlaError("give either --in or --never")
    expires_ms = 0 if never else _expires_ms(after or 0.0)

    async def ask(client: Client) -> None:
        if name not in await client.admin.list_users():
            raise OttlaError(f"there is no user {name!r}; create it with: ottla user add")
        await client.admin.set_password_expiry(name, expires_ms)

    reach.run(ask)
    click.echo(f"password of {name}: {'does not expire' if never else f'expires {time_text(expires_ms)}'}")


@user.command(
    epilog="""\b
Examples:
  ottla user delete ann
  ottla user delete ann bob --yes
""",
)
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@with_yes_option
@with_broker_options
def delete(names: tuple[str, ...], *, reach: Reach, yes: bool) -> None:
    """Delete users. Their ACLs are kept."""
    confirm(f"Delete {', '.join(names)} at {reach.servers}?", yes=yes)

    async def ask(client: Client) -> None:
        for name in dict.fromkeys(names):
            await client.admin.delete_user(name)
            click.echo(f"user {name} deleted")

    reach.run(ask)


def _expires_ms(after_s: float | None) -> int:
    """-1 if the broker decides."""
    return -1 if after_s is None else round((time.time() + after_s) * 1000)


async def _set_password(  # noqa: PLR0913
    client: Client,
    name: str,
    password: str,
    mechanisms: Sequence[ScramMechanism],
    iterations: int,
    expires_ms: int,
) -> None:
    wanted = None if expires_ms < 0 else expires_ms
    await client.admin.set_password(name, password, mechanisms, iterations, expires_ms=wanted)
    if wanted is None:
        return
    found = (await client.admin.list_users()).get(name, [])
    if any(one.expires_ms != wanted for one in found if one.mechanism in mechanisms):
        raise OttlaError(f"the password of {name} was set, but this broker does not support --expires-in")


def _password(name: str, file: str | None) -> str:
    if file is not None:
        given = _read(file).rstrip("\r\n")
    elif sys.stdin.isatty():
        given = click.prompt(f"New password of {name}", hide_input=True, confirmation_prompt=True, err=True)
    else:
        raise OttlaError("no terminal to prompt for the password on; give --password-file")
    if not given:
        raise OttlaError("a password cannot be empty")
    return given


def _read(file: str) -> str:
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text()
    except (OSError, UnicodeDecodeError) as unreadable:
        raise OttlaError(f"--password-file: {file} cannot be read: {unreadable}") from None


def _add_offline(  # noqa: PLR0913
    config_file: Path | None,
    data_dir: Path,
    name: str,
    password: str,
    mechanisms: Sequence[ScramMechanism],
    iterations: int,
    expires_ms: int,
) -> None:
    from ottla.broker.security.users import add_user_offline
    from ottla.cli.server.loading import broker_settings
    from ottla.core.config import Flag

    settings, *_ = broker_settings(config_file, (), {"broker.data_dir": Flag("--data-dir", str(data_dir))})
    names = [one.name.replace("_", "-") for one in mechanisms]
    add_user_offline(settings, name, password, names, iterations, expires_ms)
