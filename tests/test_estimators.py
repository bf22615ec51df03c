"""What the estimators share: their words for the library's."""

from dataclasses import fields

import pytest

import dsc
from dsc.dictionary import LearnConfig
from dsc.errors import DscError
from dsc.estimators import WORDS, config_of, sklearn_words
from dsc.texture import TextureConfig

PAIRS = [
    (dsc.RotationalDictionaryLearning, LearnConfig),
    (dsc.TextureClassifier, TextureConfig),
]


@pytest.mark.parametrize(("estimator", "kind"), PAIRS)
def test_words__are_those_of_the_estimator_only(estimator, kind):
    params = set(estimator().get_params())
    assert set(WORDS) < params
    assert params.isdisjoint(WORDS.values())
    assert set(WORDS.values()) - {"progress"} < {field.name for field in fields(kind)}


@pytest.mark.parametrize(("estimator", "kind"), PAIRS)
def test_config_of__defaults_are_the_defaults(estimator, kind):
    assert config_of(estimator(), kind) == kind()


@pytest.mark.parametrize(("estimator", "kind"), PAIRS)
def test_config_of__takes_every_alias(estimator, kind):
    made = estimator(n_components=7, n_nonzero_coefs=3, max_iter=5, random_state=11)
    config = config_of(made, kind)
    found = (config.n_atoms, config.sparsity, config.n_iterations, config.seed)
    assert found == (7, 3, 5, 11)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n_atoms: found 0\nseed: found -1", "n_components: found 0\nrandom_state: found -1"),
        ('use update="mod", lower n_atoms, or', 'use update="mod", lower n_components, or'),
        ("/data/seed/n_atoms.png: found nothing", "/data/seed/n_atoms.png: found nothing"),
        ("seeds: n_atoms_2", "seeds: n_atoms_2"),
    ],
)
def test_sklearn_words__are_in_errors_but_not_in_paths(text, expected):
    with pytest.raises(DscError) as caught, sklearn_words():
        raise DscError(text)
    assert str(caught.value) == expected
