"""`ottla doctor`: diagnose problems and suggest fixes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.checks.brokers import check_brokers
from ottla.cli.checks.findings import Finding, Judgement, wrong
from ottla.cli.checks.machine import check_clock, check_descriptors, check_disk
from ottla.cli.checks.ports import check_http_port, check_kafka_port
from ottla.cli.checks.software import check_software
from ottla.cli.connecting import reach_from, with_broker_choice
from ottla.cli.output import painted, show_json, terminal_width, with_output_option
from ottla.cli.settings import load_settings, with_settings_options
from ottla.cli.tables import printable
from ottla.core.config import Flag
from ottla.core.errors import ConfigError, OttlaError
from ottla.event_loop import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ottla.cli.connecting import Reach
    from ottla.core.config import Settings

_COLOURS: Final = {Judgement.OK: "green", Judgement.NOTE: "yellow", Judgement.WRONG: "red"}
_INDENT: Final = 7


@click.command(
    epilog="""\b
Examples:
  ottla doctor                                    (this machine, and the broker that may run on it)
  ottla doctor --config /etc/ottla.toml
  ottla doctor --broker prod                      (and a broker, as its clients find it)
  ottla doctor -o json | jq '.[] | select(.judgement == "wrong")'
""",
)
@click.option("--data-dir", type=click.Path(path_type=Path), help="The folder that would hold everything.")
@with_output_option
@with_broker_choice
@with_settings_options
def doctor(assignments: Sequence[str], *, data_dir: Path | None, output: str, **options: Any) -> None:
    """Diagnose this machine's setup and a running broker.

    Checks software, limits, disk, clock and ports of this machine, and whether a running broker can be reached at the
    addresses that it advertises. Exits with 1 if something is wrong.
    """
    flags = {} if data_dir is None else {"broker.data_dir": Flag("--data-dir", str(data_dir))}
    findings: list[Finding] = []
    reach: Reach | None = None
    try:
        settings = load_settings(options["config_file"], assignments, flags)
        reach = reach_from(options)
    except ConfigError as error:
        findings.append(wrong("configuration", str(error), "fix it; `ottla config example` prints every setting"))
        settings = load_defaults(flags)
    findings += run(_examine(settings, reach))
    if output == "json":
        show_json(findings)
    else:
        for line in report_lines(findings, terminal_width(sys.stdout)):
            click.echo(line)
    if count := sum(finding.judgement is Judgement.WRONG for finding in findings):
        raise OttlaError("1 thing is wrong" if count == 1 else f"{count} things are wrong")


def load_defaults(flags: dict[str, Flag]) -> Settings:
    from ottla.cli.settings import sections
    from ottla.core.config import load

    return load(sections(), command_line=flags)


async def _examine(settings: Settings, reach: Reach | None) -> list[Finding]:
    from ottla.broker.config import BrokerConfig
    from ottla.http.config import HttpConfig
    from ottla.net.config import NetConfig

    broker, net = settings.section(BrokerConfig), settings.section(NetConfig)
    return [
        *check_software(),
        check_descriptors(net.max_connections, broker.data_dir),
        check_disk(broker.data_dir),
        check_clock(broker.data_dir),
        *await check_kafka_port(net),
        *check_http_port(net.host, settings.section(HttpConfig).port),
        *(await check_brokers(reach) if reach is not None else ()),
    ]


def report_lines(findings: Iterable[Finding], width: int | None) -> Iterable[str]:
    """Lines with judgement and subject first, followed by the fix."""
    for finding in findings:
        mark = painted(f"{finding.judgement.value:<{_INDENT}}", sys.stdout, fg=_COLOURS[finding.judgement], bold=True)
        yield from _wrapped(f"{finding.subject}: {finding.text}", mark, width)
        if finding.fix is not None:
            yield from _wrapped(finding.fix, " " * _INDENT + "→ ", width)


def _wrapped(text: str, first: str, width: int | None) -> Iterable[str]:
    line, *more = click.wrap_text(printable(text), (width or 100_000) - _INDENT - 2).splitlines()
    yield first + line
    yield from (" " * (_INDENT + 2) + each for each in more)
