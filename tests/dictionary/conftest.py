"""Planted patches, a learned dictionary, and an S3 server on loopback."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from dsc.basis import disk_basis
from dsc.dictionary import learn


@pytest.fixture(scope="session")
def planted():
    """2000 patches of diameter 7: two of four atoms each, at angles of the grid, little noise."""
    basis = disk_basis(7)
    rng = np.random.default_rng(5)
    atoms = rng.standard_normal((4, basis.n_coords))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    coords = np.zeros((2000, basis.n_coords))
    for _ in range(2):
        theta = 2 * np.pi * rng.integers(0, 60, len(coords)) / 60
        turned = basis.steer(atoms[rng.integers(0, 4, len(coords))], theta)
        coords += rng.uniform(0.5, 2, (len(coords), 1)) * turned
    images = basis.to_image(coords, fill=0)
    return images + rng.normal(0, 1e-3, images.shape).astype(np.float32)


@pytest.fixture(scope="session")
def patches(natural_patches):
    """2000 patches of diameter 7 of photographs."""
    return natural_patches(7, 2000)


@pytest.fixture(scope="session")
def model(patches):
    """A dictionary of them."""
    return learn(patches, 6, 3, n_iterations=3)


@pytest.fixture(scope="module")
def s3_server():
    """The URL of a bucket on a real S3 server (moto's) on 127.0.0.1.

    Set in the configuration of fsspec: it tells file systems of several servers apart.
    """
    import fsspec.config
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    access = {"endpoint_url": f"http://{host}:{port}", "key": "test", "secret": "test"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(fsspec.config.conf, "s3", access)
        fsspec.filesystem("s3").mkdir("dictionaries")
        yield "s3://dictionaries"
    server.stop()
