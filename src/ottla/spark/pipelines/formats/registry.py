"""All formats. A built-in format is a module and a line here; that of another package is an entry point."""

from __future__ import annotations

from typing import Final

from ottla.spark.pipelines.formats.format import SourceFormat
from ottla.spark.pipelines.plugins import Plugins

_HERE: Final = "ottla.spark.pipelines.formats"
FORMATS: Final = Plugins(
    "source format",
    SourceFormat,
    group="ottla.pipeline_formats",
    built_in={
        "json": f"{_HERE}.json_records:JsonFormat",
        "csv": f"{_HERE}.csv_records:CsvFormat",
        "avro": f"{_HERE}.avro_records:AvroFormat",
        "protobuf": f"{_HERE}.protobuf_records:ProtobufFormat",
        "debezium": f"{_HERE}.debezium_records:DebeziumFormat",
        "raw": f"{_HERE}.raw_records:RawFormat",
    },
)
