"""Compiles the codecs of records and of messages, and what runs for every message that is sent, pushed or produced.

Everything else about the package is in pyproject.toml.
"""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import BaseError, CCompilerError

RECORDS = ["batch", "batches", "payload", "reader", "memory", "decode_columns", "encode", "encode_columns"]
RECORDS += ["key_offsets", "murmur2"]
WIRE = ["reader", "writer"]
CLIENT = ["producer/accumulator"]
# It writes with pwrite, which Windows lacks.
QUEUE = [] if os.name == "nt" else ["encode", "part_writer"]
SPARK = ["spark/registry/avro_arrow"]
# So does the broker, which Windows cannot run.
BROKER = [] if os.name == "nt" else ["storage/pending_appends", "storage/segment_files/batch_ends"]
FAST_PATH = ["wire", "produce", "fetch_request", "fetch_session", "fetch", "path"]
BROKER += [] if os.name == "nt" else [f"broker/fast_path/{name}" for name in FAST_PATH]


class BuildAllOrNothing(build_ext):
    """Without a C compiler the modules run as plain Python. They share C types, so one alone is of no use."""

    def run(self) -> None:
        try:
            super().run()
        except (BaseError, CCompilerError) as failed:
            for output in map(Path, self.get_outputs()):
                output.unlink(missing_ok=True)
            self.extensions = []
            print(f"warning: ottla's codecs stay uncompiled and slow: {failed}", file=sys.stderr)


setup(
    cmdclass={"build_ext": BuildAllOrNothing},
    ext_modules=cythonize(
        [Extension(f"ottla.records.{name}", [f"src/ottla/records/{name}.py"]) for name in RECORDS]
        + [Extension(f"ottla.wire.{name}", [f"src/ottla/wire/{name}.pyx"]) for name in WIRE]
        + [Extension(f"ottla.client.{name.replace('/', '.')}", [f"src/ottla/client/{name}.py"]) for name in CLIENT]
        + [Extension(f"ottla.{name.replace('/', '.')}", [f"src/ottla/{name}.pyx"]) for name in BROKER + SPARK]
        + [Extension(f"ottla.queue.{name}", [f"src/ottla/queue/{name}.py"]) for name in QUEUE],
        build_dir="build",
        language_level=3,
        compiler_directives={"auto_pickle": False},
    ),
)
