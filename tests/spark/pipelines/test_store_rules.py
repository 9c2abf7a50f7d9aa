"""`[storage]` settings and store addresses: meaning and errors."""

from pathlib import Path

import pytest

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.definition import Pipeline
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.sinks.tables import TableSink
from ottla.spark.pipelines.stores.addresses import why_wrong
from ottla.spark.pipelines.stores.opening import settled
from ottla.spark.pipelines.stores.options import delta_options, iceberg_properties, obstore_config
from ottla.spark.pipelines.stores.refusals import explained
from ottla.spark.pipelines.stores.secrets import redacted, secrets_of
from ottla.spark.pipelines.stores.settings import StorageSettings, with_environment

FILE = """
[source.orders]
schema = "id bigint"
[storage]
endpoint = "https://minio.example"
region = "eu-central-1"
access_key_id = "${KEY}"
secret_access_key = "${SECRET}"
[sink.lake]
kind = "delta"
path = "s3a://lake/orders/"
[sink.other]
kind = "iceberg"
path = "s3://other/tables"
table = "shop.orders"
storage = { region = "us-east-2" }
catalog = { type = "sql", uri = "postgresql+psycopg://shop:Pass%2Fword@db/catalog" }
"""
ENVIRONMENT = {"KEY": "AKIAEXAMPLE", "SECRET": "very-secret-text"}


def load(text: str) -> Pipeline:
    return parse_pipeline(text, Path("shop.toml"), ENVIRONMENT)


def test_settings_of_the_file_apply_to_every_sink_without_its_own() -> None:
    lake, other = (load(FILE).sinks[name] for name in ("lake", "other"))
    assert isinstance(lake, TableSink)
    assert isinstance(other, TableSink)
    assert lake.path == "s3a://lake/orders"
    assert lake.storage.region == "eu-central-1"
    assert other.storage.region == "us-east-2"
    assert other.storage.endpoint == "https://minio.example"
    assert other.storage.access_key_id == "AKIAEXAMPLE"


def test_no_secret_is_in_the_text_of_a_pipeline_or_of_an_error() -> None:
    pipeline = load(FILE)
    shown = repr(pipeline)
    secrets = secrets_of(pipeline.sinks.values())
    for secret in ("very-secret-text", "AKIAEXAMPLE", "Pass%2Fword"):
        assert secret not in shown
        assert secret in secrets
    assert redacted("bad key very-secret-text, password Pass/word", secrets) == "bad key ***, password ***"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('path = "s3://lake"', "names no folder in the bucket"),
        ('path = "s3:///orders"', "names no bucket"),
        ('path = "hdfs://lake/orders"', "hdfs:// is not supported"),
        ('path = "abfs://lake/orders"', "names no account"),
        ('path = "s3://lake/x"\nstorage = { endpont = "https://x" }', "no such key; did you mean endpoint?"),
        ('path = "s3://lake/x"\nstorage = { endpoint = "http://x" }', "set allow_http = true"),
        ('path = "s3://lake/x"\nstorage = { endpoint = "minio:9000" }', "must begin with https:// or http://"),
        ('path = "s3://lake/x"\nstorage = { access_key_id = "a" }', "belong together"),
    ],
)
def test_a_wrong_place_or_setting_is_named_with_its_line(line: str, said: str) -> None:
    with pytest.raises(ConfigError, match=r"shop.toml, line \d+: \[sink.lake\]") as refused:
        load(f'[source.orders]\nschema = "id bigint"\n[sink.lake]\nkind = "delta"\n{line}\n')
    assert said in str(refused.value)


def test_an_iceberg_table_in_a_store_needs_a_catalog_and_a_database_is_a_local_file() -> None:
    with pytest.raises(ConfigError, match="needs one, such as"):
        load('[source.a]\nschema="id int"\n[sink.b]\nkind="iceberg"\npath="s3://lake/x"\ntable="a.b"\n')
    with pytest.raises(ConfigError, match="writes a file on this machine"):
        load('[source.a]\nschema="id int"\n[sink.b]\nkind="sqlite"\npath="s3://lake/x"\ntable="b"\n')


def test_an_address_requires_the_package_of_its_store() -> None:
    assert why_wrong("s3://lake/orders") is None
    assert why_wrong("gs://lake/a/b") is None
    assert why_wrong("abfss://lake@shop.dfs.core.windows.net/orders") is None


def test_the_environment_fills_unset_settings_and_keys_override_a_profile() -> None:
    empty = StorageSettings()
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_PROFILE": "p"}
    assert with_environment(empty, keys).access_key_id == "a"
    assert with_environment(empty, keys).profile == ""
    assert with_environment(empty, {"AWS_PROFILE": "p"}).profile == "p"
    assert with_environment(StorageSettings(profile="q"), keys).access_key_id == ""
    found = with_environment(StorageSettings(region="eu-1"), {"AWS_REGION": "us-1", "AWS_ENDPOINT_URL": "http://x"})
    assert (found.region, found.endpoint, found.allow_http) == ("eu-1", "http://x", True)


def test_each_library_gets_the_settings_under_its_names() -> None:
    s3 = StorageSettings(endpoint="http://x", allow_http=True, access_key_id="a", secret_access_key="b")
    assert obstore_config("s3://lake/x", s3)["conditional_put"] == "etag"
    assert delta_options("s3://lake/x", s3)["aws_secret_access_key"] == "b"
    assert delta_options("s3://lake/x", s3)["allow_http"] == "true"
    assert iceberg_properties("s3://lake/x", s3)["s3.region"] == "us-east-1"
    azure = StorageSettings(account_key="k")
    address = "abfss://lake@shop.dfs.core.windows.net/x"
    assert obstore_config(address, azure)["account_name"] == "shop"
    assert delta_options(address, azure)["azure_storage_account_key"] == "k"
    assert iceberg_properties(address, azure)["adls.account-name"] == "shop"
    google = StorageSettings(service_account="sa.json")
    assert delta_options("gs://lake/x", google)["google_service_account"] == "sa.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "… 404 Not Found: <Error><Code>NoSuchBucket</Code><Message>No.</Message>",
            "no bucket lake at http://x",
        ),
        (
            "… <Code>SignatureDoesNotMatch</Code><Message>Wrong.</Message>",
            "the credentials (SignatureDoesNotMatch",
        ),
        (
            "Error performing PUT http://169.254.169.254/latest/api/token",
            "no credentials were found",
        ),
        ("Error performing GET … HTTP error: error sending request\n\nDebug source:", "did not answer; check endpoint"),
        ("… non-2xx status code: 501 Not Implemented: \n\nDebug source", "501 Not Implemented"),
    ],
)
def test_a_store_error_is_one_line_with_a_remedy(text: str, said: str) -> None:
    shown = explained(text, "s3://lake/orders", "http://x")
    assert said in shown
    assert "\n" not in shown
    assert "Debug source" not in shown


def test_a_profile_gives_its_keys_and_region_and_a_missing_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("boto3")
    (tmp_path / "credentials").write_text("[shop]\naws_access_key_id = a\naws_secret_access_key = b\n")
    (tmp_path / "config").write_text("[profile shop]\nregion = eu-central-1\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    found = settled("s3://lake/x", StorageSettings(profile="shop"))
    assert (found.access_key_id, found.secret_access_key, found.region) == ("a", "b", "eu-central-1")
    monkeypatch.setenv("AWS_PROFILE", "shop")
    assert settled("s3://lake/x", StorageSettings()).access_key_id == "a"
    assert settled("abfs://a@b/x", StorageSettings()) == StorageSettings()
    with pytest.raises(ConfigError, match="the AWS profile shap cannot be used"):
        settled("s3://lake/x", StorageSettings(profile="shap"))
