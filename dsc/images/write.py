"""Images as files."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dsc.errors import DscError
from dsc.files import write_whole

WRITABLE = (".npy", ".png", ".tif", ".tiff")


def check_new_file(out: str) -> Path:
    """The path of an image to be written, refused if it cannot be."""
    path = Path(out)
    if path.suffix.lower() not in WRITABLE:
        raise DscError(f"out: found {out!r}, need a name that ends in .npy, .png or .tif")
    if path.exists():
        raise DscError(f"{out}: exists already: choose another --out, or remove it")
    if not path.parent.is_dir():
        raise DscError(f"{out}: there is no folder {path.parent}: make it first")
    return path


def write_image(path: Path, grey: NDArray[np.float32]) -> None:
    """Write grey values (y, x), whole or not at all; PNG has 256 levels from 0 to 1."""
    data = io.BytesIO()
    suffix = path.suffix.lower()
    if suffix == ".npy":
        np.save(data, grey)
    elif suffix == ".png":
        from PIL import Image

        Image.fromarray(np.round(255 * grey.clip(0, 1)).astype(np.uint8)).save(data, format="PNG")
    else:
        import tifffile

        tifffile.imwrite(data, grey)
    write_whole(path, data.getvalue())
