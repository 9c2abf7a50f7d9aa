"""`ottla pipeline test`."""

from __future__ import annotations

from pathlib import Path

import click

from ottla.cli.pipelines.files import need_spark, with_file
from ottla.core.errors import ConfigError


@click.command(
    "test",
    epilog="""\b
Examples:
  ottla pipeline test orders.toml                    (the cases of orders.tests.toml)
  ottla pipeline test orders.toml --case late_orders
  ottla pipeline test orders.toml --tests cases.toml
""",
)
@with_file
@click.option("--tests", type=click.Path(path_type=Path), help="File with the cases [default: NAME.tests.toml].")
@click.option("--case", "names", multiple=True, metavar="NAME", help="Run only this case; may be repeated.")
def test_verb(file: Path, *, tests: Path | None, names: tuple[str, ...]) -> None:
    """Run a pipeline's test cases: sample records in, expected rows out, without a broker; exit with 1 if one fails."""
    need_spark()
    from ottla.spark.pipelines.cases.loading import load_cases, tests_file
    from ottla.spark.pipelines.cases.running import load_for_tests, run_cases, session_for_tests

    pipeline = load_for_tests(file)
    cases = load_cases(tests or tests_file(file), pipeline)
    if unknown := set(names) - {case.name for case in cases}:
        raise ConfigError(f"--case: there is no [case.{min(unknown)}]; there are {', '.join(c.name for c in cases)}")
    chosen = [case for case in cases if not names or case.name in names]
    spark = session_for_tests(pipeline)
    failed = 0
    try:
        for verdict in run_cases(spark, pipeline, chosen):
            failed += bool(verdict.differences)
            click.echo(f"{'FAILED' if verdict.differences else 'ok':<6} {verdict.case.name} ({verdict.seconds:.1f} s)")
            for line in verdict.differences:
                click.echo(f"       {line}")
    finally:
        spark.stop()
    click.echo(f"{pipeline.name}: {len(chosen) - failed} of {len(chosen)} cases passed", err=True)
    if failed:
        raise SystemExit(1)
