"""Names that are imported when they are first used, and names that are none."""

import pytest

import ottla
import ottla.dmqp
import ottla.testing


def test_every_name_that_is_offered_can_be_had() -> None:
    for module in (ottla, ottla.dmqp, ottla.testing):
        assert all(getattr(module, name) is not None for name in module.__all__)


def test_a_name_that_is_none_is_refused() -> None:
    # `make check` fails if a type checker would let these pass: the ignores would be unused.
    with pytest.raises(AttributeError, match="module 'ottla' has no attribute 'Producr'"):
        _ = ottla.Producr  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'ottla.testing' has no attribute 'Brokr'"):
        _ = ottla.testing.Brokr  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"module 'ottla.dmqp' has no attribute 'Clent'"):
        _ = ottla.dmqp.Clent  # type: ignore[attr-defined]
