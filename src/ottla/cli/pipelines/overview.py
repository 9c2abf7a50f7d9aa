"""`ottla pipeline init`, `check` and `status`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ottla.cli.connecting import Reach, with_broker_options
from ottla.cli.output import show_heading, show_json, show_table, with_output_option
from ottla.cli.pipelines.files import kafka_settings, load, need_spark, started_spark, with_file, with_master
from ottla.core.errors import ConfigError
from ottla.event_loop import run

_UNHEALTHY: Final = 1
_COLUMNS: Final = (
    "pipeline",
    "state",
    "seen",
    "query",
    "batch",
    "rows_read",
    "rows_per_second",
    "lag",
    "watermark",
    "late_rows",
)


@click.command(
    epilog="""\b
Examples:
  ottla pipeline init orders
  ottla pipeline init orders --file shop/orders.toml --sink delta
""",
)
@click.argument("topic")
@click.option("--file", type=click.Path(path_type=Path), help="Output file [default: TOPIC.toml].")
@click.option(
    "--sink",
    type=click.Choice(["parquet", "delta", "iceberg", "topic", "sqlite", "postgresql", "console"]),
    default="parquet",
    show_default=True,
    help="Sink of the example.",
)
@with_broker_options
def init(topic: str, *, reach: Reach, file: Path | None, sink: str) -> None:
    """Generate a pipeline file for TOPIC with an inferred schema."""
    from ottla.spark.pipelines.cases.example import example_tests
    from ottla.spark.pipelines.cases.loading import tests_file
    from ottla.spark.pipelines.example import example
    from ottla.spark.pipelines.sampling import first_records

    file = file or Path(f"{topic}.toml")
    if file.exists():
        raise ConfigError(f"{file} exists; choose another name with --file")
    kafka = {"bootstrap.servers": reach.servers, **kafka_settings(reach)}
    records = first_records(kafka, [topic], 1000)
    values = [record.value for record in records]
    file.write_text(example(topic, reach.servers, values, sink, file.stem), "utf-8")
    tests, cases = tests_file(file), example_tests(file.name, values)
    has_tests = 'format = "json"' in file.read_text("utf-8") and cases is not None and not tests.exists()
    if has_tests and cases is not None:
        tests.write_text(cases, "utf-8")
    click.echo(f"wrote {file}{f' and {tests}' if has_tests else ''} from {len(records)} records of {topic}. Next:")
    commands = ["check", *(["test"] if has_tests else []), "run"]
    click.echo("\n".join(f"  ottla pipeline {command} {file}" for command in commands))


@click.command(
    epilog="""\b
Examples:
  ottla pipeline check orders.toml
  ottla pipeline check orders.toml --plan
  ottla pipeline check orders.toml --no-spark
""",
)
@with_file
@click.option("--plan", is_flag=True, help="Include Spark's query plans.")
@click.option("--no-spark", is_flag=True, help="Check the file only, without Spark or a broker.")
@with_master
@with_broker_options
def check(file: Path, *, reach: Reach, plan: bool, no_spark: bool, master: str) -> None:
    """Validate a pipeline and explain what it would do."""
    from ottla.spark.pipelines.outline import outline

    pipeline = load(file, reach)
    if no_spark:
        click.echo(outline(pipeline))
        return
    need_spark()
    from ottla.spark.pipelines.preparing import with_schemas
    from ottla.spark.pipelines.queries import check_upgrade, plan_text, planned_queries
    from ottla.spark.pipelines.state_folder import StateFolder

    state = StateFolder(pipeline.state)
    pipeline = with_schemas(pipeline, state)
    spark = started_spark(pipeline, master)
    try:
        queries = planned_queries(spark, pipeline)
        changes = check_upgrade(pipeline, queries, state)
        click.echo(outline(pipeline, {query.name: query.columns for query in queries}, changes))
        for query in queries if plan else ():
            show_heading(f"\n{query.name}")
            click.echo(plan_text(query.frame))
    finally:
        spark.stop()
    click.echo(f"{file}: fine")


@click.command(
    epilog="""\b
Examples:
  ottla pipeline status
  ottla pipeline status orders -o json
""",
)
@click.argument("names", metavar="[PIPELINE]...", nargs=-1)
@with_output_option
@with_broker_options
def status(names: tuple[str, ...], *, reach: Reach, output: str) -> None:
    """Show state, rates, lag and watermark of pipelines; exit with 1 if one failed or is lost."""
    from ottla.cli.pipelines.reports import read_statuses, rows

    found = [each for each in run(read_statuses(reach)) if not names or each.name in names]
    if missing := set(names) - {each.name for each in found}:
        raise ConfigError(f"no pipeline named {', '.join(sorted(missing))} is known to {reach.servers}")
    if output == "json":
        show_json([each.as_json() for each in found])
    else:
        show_table([row for each in found for row in rows(each)], _COLUMNS)
        for each in found:
            if each.status.error:
                click.echo(f"{each.name}: {each.status.error}")
    if any(each.status.state in ("failed", "lost") for each in found):
        raise SystemExit(_UNHEALTHY)
