"""The options of a patch set."""

from __future__ import annotations

from dataclasses import fields

import pytest

from dsc.errors import DscError
from dsc.patches import PatchConfig


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"diameter": 2}, r"diameter: found 2, need a whole number from 3 to 255"),
        ({"diameter": 11.5}, r"diameter: found 11.5, need a whole number from 3 to 255"),
        ({"stride": 0}, r"stride: found 0, need a whole number ≥ 1"),
        ({"min_std": -0.1}, r"min_std: found -0.1, need a number ≥ 0"),
        ({"min_std": float("nan")}, r"min_std: found nan"),
        ({"center": 1}, r"center: found 1, need True or False"),
        ({"per_image": 0}, r"per_image: found 0"),
        ({"per_image": 5, "per_class": 5}, r"per_image and per_class: found both"),
        ({"rotate": (0, "x")}, r"rotate: found \(0, 'x'\)"),
        ({"rotate": 30.0}, r"rotate: found 30.0, need a tuple"),
        ({"materialize": "disc"}, r"materialize: unknown 'disc'.* did you mean 'disk'"),
        ({"seed": -1}, r"seed: found -1"),
    ],
)
def test_config__refuses(options, message):
    with pytest.raises(DscError, match=message):
        PatchConfig(**options)


def test_config__names_all_problems_at_once():
    with pytest.raises(DscError) as error:
        PatchConfig(diameter=1, stride=0, min_std=-1)
    assert len(str(error.value).splitlines()) == 3


def test_config__every_option_is_explained():
    assert all(len(f.metadata["help"]) > 10 for f in fields(PatchConfig))


def test_config__unknown_words_get_a_suggestion():
    with pytest.raises(DscError, match=r"unknown 'diametre'.*did you mean 'diameter'"):
        PatchConfig.from_options({"diametre": 11})
    assert PatchConfig.from_options({"rotate": [0, 90]}).rotate == (0, 90)
