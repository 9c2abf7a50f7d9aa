"""The fuzzing corpus, through every form of the codec."""

from __future__ import annotations

import pytest
from fuzz.__main__ import CORPUS
from fuzz.forms import load_forms
from fuzz.targets import NAMES, Targets

TARGETS = Targets(load_forms())


@pytest.mark.parametrize("target", NAMES)
def test_every_input_of_the_corpus_gives_the_same_result_in_all_forms(target: str) -> None:
    inputs = sorted((CORPUS / target).iterdir())

    assert len(inputs) >= 5
    for each in inputs:
        getattr(TARGETS, target)(each.read_bytes())


def test_the_corpus_stays_small() -> None:
    assert sum(each.stat().st_size for each in CORPUS.rglob("*")) < 300_000
