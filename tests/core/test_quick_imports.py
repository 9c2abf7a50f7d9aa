"""Garbage collection is paused during bulk imports."""

import gc

import pytest

from ottla.core.quick_imports import without_garbage_collection


def test_collection_is_enabled_again_even_after_an_error() -> None:
    with pytest.raises(ImportError), without_garbage_collection():  # noqa: PT012
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


def test_collection_stays_disabled_if_it_was_before() -> None:
    gc.disable()
    try:
        with without_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
