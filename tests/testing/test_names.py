"""Lazily imported names, and unknown names."""

import pytest

import ottla
import ottla.dmqp
import ottla.testing


def test_every_exported_name_can_be_imported() -> None:
    for module in (ottla, ottla.dmqp, ottla.testing):
        assert all(getattr(module, name) is not None for name in module.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    # `make check` fails if a type checker would let these pass: the ignores would be unused.
    with pytest.raises(AttributeError, match="module 'ottla' has no attribute 'Producr'"):
        _ = ottla.Producr  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'ottla.testing' has no attribute 'Brokr'"):
        _ = ottla.testing.Brokr  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'ottla.dmqp' has no attribute 'Clent'"):
        _ = ottla.dmqp.Clent  # type: ignore[attr-defined]
