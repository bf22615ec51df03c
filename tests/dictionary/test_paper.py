"""The paper's cameraman, from its image: needs the folder of images named by DSC_DATA."""

import os
from pathlib import Path

import pytest

from dsc.dictionary import learn
from dsc.patches import PatchConfig, extract_patches

pytestmark = pytest.mark.skipif(
    "DSC_DATA" not in os.environ,
    reason="set DSC_DATA to the folder with cameraman.tif (see the README)",
)


@pytest.fixture(scope="module")
def cameraman(tmp_path_factory):
    url = tmp_path_factory.mktemp("cameraman") / "patches.zarr"
    config = PatchConfig(diameter=11, min_std=0.1, unit=True)
    return extract_patches(Path(os.environ["DSC_DATA"]) / "cameraman.tif", url, config)


def test_cameraman__error_is_that_of_the_design(cameraman):
    assert cameraman.n_patches == 17330
    rotational, standard = (
        learn(cameraman, 20, 4, n_iterations=10, basis=basis) for basis in ("disk", "pixels")
    )
    assert 1000 * rotational.mse <= 0.48
    assert rotational.mse <= 0.60 * standard.mse
