"""Garbage is not looked for while much is imported, and is looked for again afterwards."""

import gc

import pytest

from ottla.core.quick_imports import without_garbage_collection


def test_it_is_looked_for_again_whatever_happens() -> None:
    with pytest.raises(ImportError), without_garbage_collection():  # noqa: PT012
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled()


def test_where_it_was_not_looked_for_it_is_not_afterwards() -> None:
    gc.disable()
    try:
        with without_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
