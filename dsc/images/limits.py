"""How much is read at once: a small file may stand for more than a machine can hold."""

from __future__ import annotations

import os

from dsc.errors import DscError, readable

VARIABLE = "DSC_MAX_IMAGE_BYTES"
MOST_BYTES = 10**9  # of an image, a tile or a chunk that can only be decoded as a whole
SMALLER = "store it as Zarr or TIFF in smaller chunks or tiles, which are read one by one"
WHOLE = 64 * 2**20  # bytes: an image up to this is decoded as a whole, which is faster
MOST_IMAGES = 100_000  # in one file or array: each is listed in the patch set


def check_decoded(n_bytes: int, what: str = "an image", remedy: str = SMALLER) -> None:
    """Refuse what would be too large, before it is decoded."""
    given = os.environ.get(VARIABLE, str(MOST_BYTES))
    if not (given.isascii() and given.isdigit() and len(given) < 20):
        raise DscError(f"{VARIABLE}: found {given!r}, need a number of bytes, such as {MOST_BYTES}")
    if n_bytes > int(given):
        raise DscError(
            f"found {what} of {readable(n_bytes)} when decoded, need at most "
            f"{readable(int(given))}: if it is what you mean, set {VARIABLE}={n_bytes}, or {remedy}"
        )


def check_count(n_images: int) -> None:
    """Refuse a file or an array that says to hold more images than can be listed."""
    if n_images > MOST_IMAGES:
        raise DscError(
            f"found {n_images:,} images in it, need at most {MOST_IMAGES:,}: check that its axes "
            "are (image, y, x), or split it"
        )
