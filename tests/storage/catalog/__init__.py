import pytest

# A contract's assertions should explain themselves like a test's own.
pytest.register_assert_rewrite(f"{__name__}.contract")
