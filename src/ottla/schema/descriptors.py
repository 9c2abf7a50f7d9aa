"""Converts the text of a .proto file to a descriptor of the protobuf package."""

from __future__ import annotations

import base64
from importlib import import_module
from typing import TYPE_CHECKING

from ottla.registry.errors import InvalidSchema
from ottla.registry.protobuf.parsing import parse
from ottla.registry.protobuf.serialized import serialized
from ottla.registry.protobuf.types import Types
from ottla.schema.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from google.protobuf.descriptor import FileDescriptor
    from google.protobuf.descriptor_pool import DescriptorPool


def file_descriptor(text: str, references: Mapping[str, str]) -> FileDescriptor:
    """The descriptor, in a separate pool: another version of the file may be loaded in this process."""
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    files = {name: parse(each) for name, each in references.items()}
    try:
        for name, file in files.items():
            _add(pool, Types(file, files), name)
        _add(pool, Types(parse(text), files), "default")
        return pool.FindFileByName("default")
    except (TypeError, KeyError, InvalidSchema) as wrong:
        raise SchemaError(f"the Protobuf schema cannot be loaded: {wrong}") from wrong


def _add(pool: DescriptorPool, types: Types, name: str) -> None:
    content = base64.b64decode(serialized(types, name))
    for each in types.file.all_imports():
        if each.startswith("google/protobuf/"):
            _add_known(pool, each)
    pool.AddSerializedFile(content)


def _add_known(pool: DescriptorPool, name: str) -> None:
    """Add a file of the protobuf package."""
    try:
        pool.FindFileByName(name)
    except KeyError:
        try:
            known = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2").DESCRIPTOR
        except ImportError:
            raise SchemaError(f"cannot import {name}") from None
        for each in known.dependencies:
            _add_known(pool, each.name)
        pool.AddSerializedFile(known.serialized_pb)
