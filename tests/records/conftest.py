from __future__ import annotations

import pytest
from fuzz.forms import Form, load_forms


@pytest.fixture(scope="session", params=load_forms(), ids=lambda form: form.name)
def form(request: pytest.FixtureRequest) -> Form:
    """Each form of the codec in turn: compiled, and the same sources as plain Python."""
    chosen: Form = request.param
    return chosen
