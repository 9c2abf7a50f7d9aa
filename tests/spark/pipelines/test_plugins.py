"""Sinks and formats of other packages: found by entry points, and what is reported if one cannot be used."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines
from tests.test_worked_examples import examples

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.definition import Source
from ottla.spark.pipelines.formats.registry import FORMATS
from ottla.spark.pipelines.keys import key_names
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.outline import outline
from ottla.spark.pipelines.sinks.registry import SINKS
from ottla.spark.pipelines.sinks.sink import Sink
from ottla.spark.pipelines.stores.secrets import secrets_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Send = Callable[..., None]
DOCS = Path(__file__).parents[3] / "docs" / "pipelines.md"
SOURCE = '[source.orders]\nschema = "id bigint"\n'
TOY = """
from __future__ import annotations
from typing import Annotated, Literal
import msgspec
from ottla.spark.pipelines.keys import FilePath
from ottla.spark.pipelines.sinks.sink import Sink

class Level(msgspec.Struct):
    low: int
    high: int = 9

class ToySink(Sink, frozen=True, kw_only=True, tag="toy"):
    path: FilePath
    level: Level
    port: Annotated[int, msgspec.Meta(ge=1)] = 80
    style: Literal["plain", "fancy"] = "plain"
    api_token: str = ""
    columns: tuple[str, ...] = ()
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    quiet: bool = False

    @property
    def place(self):
        return self.path

    def check(self, fields):
        if self.quiet and self.style == "fancy":
            fields.wrong("quiet", "a fancy toy is never quiet; use plain")

class Untyped(Sink, frozen=True, kw_only=True, tag="untyped"):
    level: "NoSuchType"

class Other(Sink, frozen=True, kw_only=True, tag="another"):
    pass
"""
FORMAT = """
from ottla.spark.pipelines.formats.format import SourceFormat

class Hex(SourceFormat, frozen=True, kw_only=True, tag="hex"):
    prefix: str = ""

    def check(self, source, fields):
        if self.prefix and not self.prefix.endswith(":"):
            fields.wrong("prefix", "must end with a colon")

    def parsed(self, value, schema):
        from pyspark.sql import functions as F
        text = F.substring(value.cast("string"), len(self.prefix) + 1, 1000)
        return F.from_json(F.try_to_binary(text, F.lit("hex")).cast("string"), schema)
"""
RAW = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)
ENTRY_POINTS = """
[ottla.pipeline_formats]
hex = toy_formats:Hex
broken = toy_sinks_that_fail:Broken

[ottla.pipeline_sinks]
toy = toy_sinks:ToySink
untyped = toy_sinks:Untyped
misnamed = toy_sinks:Other
nothing = toy_sinks:NoSuchClass
broken = toy_sinks_that_fail:Broken
function = os.path:join
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Installs a package of plug-ins: its modules, and its entry points as an installer writes them."""
    (tmp_path / "toy_sinks.py").write_text(TOY)
    (tmp_path / "toy_formats.py").write_text(FORMAT)
    (tmp_path / "toy_sinks_that_fail.py").write_text("import no_such_driver\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def install(name: str) -> None:
        info = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(ENTRY_POINTS)

    install("toy-sinks")
    yield install  # type: ignore[misc]
    for module in ("toy_sinks", "toy_formats", "worked_example"):
        sys.modules.pop(module, None)


def sink(text: str) -> Sink:
    return parse_pipeline(f"{SOURCE}[sink.out]\n{text}", Path("/jobs/shop.toml"), {}).sinks["out"]


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as wrong:
        sink(text)
    return [re.sub(r".*\[sink.out\]:? ", "", line) for line in str(wrong.value).splitlines()]


@pytest.mark.usefixtures("package")
def test_a_sink_of_another_package_is_found_by_its_entry_point_and_its_fields_are_its_keys() -> None:
    text = """kind = "toy"\npath = "x"\nlevel = { low = 1 }\nport = 8080\nstyle = "fancy"\ncolumns = "id"
labels = { a = 1 }\napi_token = "much-hidden"\n"""
    toy = sink(text)

    assert toy.kind == "toy"
    assert toy.place == "/jobs/x"
    assert (toy.level.low, toy.level.high, toy.port, toy.style) == (1, 9, 8080, "fancy")  # type: ignore[attr-defined]
    assert (toy.columns, toy.labels, toy.mode) == (("id",), {"a": "1"}, "append")  # type: ignore[attr-defined]
    assert secrets_of([toy]) == ("much-hidden",)
    assert "much-hidden" not in repr(toy)
    pipeline = parse_pipeline(f"{SOURCE}[sink.out]\n{text}", Path("/jobs/shop.toml"), {})
    assert outline(pipeline).endswith("  sink out: rows of orders to toy /jobs/x, append")


@pytest.mark.usefixtures("package")
def test_wrong_keys_of_a_sink_of_another_package_are_reported_all_at_once() -> None:
    assert mistakes('kind = "toy"\nlevel = { low = "x" }\nport = 0\nstyle = "odd"\nplth = "x"\nurl = "u"') == [
        "a toy sink needs path",
        "level: Expected `int`, got `str` - at `$.low`",
        "port: must be a whole number of at least 1, not 0",
        "style: 'odd' is not one of plain, fancy",
        "plth: no such key; did you mean path?",
        "url: a toy sink has no url",
    ]
    assert mistakes('kind = "toy"\npath = "x"\nlevel = { low = 1 }\nstyle = "fancy"\nquiet = true') == [
        "quiet: a fancy toy is never quiet; use plain"
    ]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("tyo", "'tyo' is not one of parquet, delta, iceberg, topic, postgresql, sqlite, jdbc, console, broken, "),
        ("tyo", "; did you mean toy?"),
        ("broken", "could not be imported: ModuleNotFoundError: No module named 'no_such_driver'"),
        ("broken", "the sink broken of toy-sinks (toy_sinks_that_fail:Broken)"),
        ("nothing", "could not be imported: AttributeError: module 'toy_sinks' has no attribute 'NoSuchClass'"),
        ("function", "must be a subclass of ottla.spark.pipelines.sinks.sink.Sink, not <function join"),
        ("misnamed", "has the tag 'another'; declare it as class Other(…, tag=\"misnamed\")"),
        ("untyped", "toy_sinks.Untyped has a field of an unusable type: name 'NoSuchType' is not defined"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_plugin_that_cannot_be_used_is_one_line_with_the_reason(kind: str, said: str) -> None:
    [line] = mistakes(f'kind = "{kind}"\nkey_of_its_own = 1' if kind != "tyo" else f'kind = "{kind}"')
    assert line.startswith("kind: ")
    assert said in line


def test_two_packages_with_the_same_kind_are_refused_and_built_in_kinds_cannot_be_replaced(
    package: Callable[[str], None], tmp_path: Path
) -> None:
    package("rival-sinks")
    changed = ENTRY_POINTS.replace("toy_sinks:ToySink", "rival:ToySink").replace("toy =", "parquet = rival:X\ntoy =")
    (tmp_path / "rival_sinks-1.0.dist-info" / "entry_points.txt").write_text(changed)

    [line] = mistakes('kind = "toy"\npath = "x"')
    assert "rival-sinks (rival:ToySink) and toy-sinks (toy_sinks:ToySink) both declare the sink toy" in line
    assert sink('kind = "parquet"\npath = "x"').kind == "parquet"
    assert len(SINKS.names()) == len(set(SINKS.names()))


def test_every_built_in_kind_is_documented_with_its_keys() -> None:
    whole = DOCS.read_text("utf-8")
    for format_ in FORMATS.built_in():
        assert f"`{format_.__struct_config__.tag}`" in whole.partition("### Sources: ")[2].partition("\n#")[0]
    page = whole.partition("### Sinks: ")[2].partition("\n#")[0]
    for kind in SINKS.built_in():
        name = kind.__struct_config__.tag
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        assert row.endswith(f"| {kind.summary} |"), name
        if "the same" not in row:
            own = [key for key in key_names(kind) if key not in ("name", "of", "mode")]
            assert [key for key in own if f"`{key}`" not in row] == [], name


def test_a_file_is_checked_without_spark_and_without_importing_other_kinds() -> None:
    code = (
        "import sys; from pathlib import Path; from ottla.spark.pipelines.loading import parse_pipeline;"
        f"parse_pipeline({SOURCE!r} + '[sink.out]\\nkind = \"console\"', Path('shop.toml'), {{}});"
        "print('ottla.spark.pipelines.sinks.iceberg' in sys.modules);"
        "from ottla.spark.pipelines.sinks.registry import SINKS; list(SINKS.built_in());"
        "from ottla.spark.pipelines.formats.registry import FORMATS; list(FORMATS.built_in());"
        "print([name for name in ('pyspark', 'deltalake', 'pyiceberg', 'psycopg', 'pyarrow') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["False", "[]"]


def source(text: str) -> Source:
    return parse_pipeline(f'[source.a]\n{text}\n[sink.out]\nkind = "console"', Path("/x.toml"), {}).sources["a"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            'format = "hxe"',
            "format: 'hxe' is not one of json, csv, avro, protobuf, debezium, raw, broken, hex; did you mean hex?",
        ),
        (
            'format = "broken"',
            "the source format broken of toy-sinks (toy_sinks_that_fail:Broken) could not be",
        ),
        ('format = "hex"\nprefix = "0x"', "prefix: must end with a colon"),
        ('format = "hex"\nprefx = "0x"', "prefx: no such key; did you mean prefix?"),
        ('format = "json"\nprefix = "0x:"', "prefix: no such key"),
    ],
)
@pytest.mark.usefixtures("package")
def test_a_format_that_cannot_be_used_is_one_line_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        source(text)
    [line] = str(wrong.value).splitlines()
    assert said in line


def test_keys_of_other_formats_have_no_effect_as_before() -> None:
    assert source('framing = "confluent"').format.name == "json"
    assert source('format = "avro"\noptions = { sep = ";" }').format.name == "avro"


@pytest.mark.usefixtures("package")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_records_in_a_format_of_another_package_become_rows_and_dead_letters(spark: "SparkSession") -> None:
    from ottla.spark.pipelines.parsing import bad_rows, good_rows

    made = source('format = "hex"\nprefix = "hex:"\nschema = "id bigint, city string"\ntopics = "orders"')
    values = [b"hex:" + json.dumps({"id": 1, "city": "Prag"}).encode().hex().encode(), b"hex:zz", None]
    raw = spark.createDataFrame([(None, value, "orders", 0, at, None, None) for at, value in enumerate(values)], RAW)

    assert [(row.id, row.city, row._offset) for row in good_rows(raw, made).collect()] == [(1, "Prag", 0)]
    told = [
        {each.key: bytes(each.value or b"") for each in row.headers} for row in bad_rows(raw, made, "shop").collect()
    ]
    assert [each["ottla.error"] for each in told] == [b"not valid hex", b"the record has no value"]


@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_worked_example_of_a_sink_writes_each_row_once_on_spark(
    package: Callable[[str], None], pipelines: Pipelines, cluster: Cluster, send: Send, tmp_path: Path
) -> None:
    (tmp_path / "worked_example.py").write_text(examples()["lines"].code)
    package("worked-example")
    declared = "[ottla.pipeline_sinks]\nlines = worked_example:LinesSink\n"
    (tmp_path / "worked_example-1.0.dist-info" / "entry_points.txt").write_text(declared)
    topic = cluster.topic()
    text = f"""
[source.orders]
topics = "{topic}"
schema = "id bigint"
dead_letters = "none"
[sink.out]
kind = "lines"
path = "rows"
"""
    send(topic, [{"id": number} for number in range(3)])
    assert pipelines.run(text).state == "finished"
    send(topic, [{"id": 3}])
    assert pipelines.run(text).state == "finished"

    files = sorted((tmp_path / "rows").glob("*.jsonl"))
    assert sorted(json.loads(line)["id"] for file in files for line in file.read_text().splitlines()) == [0, 1, 2, 3]
    assert len(files) >= 2
