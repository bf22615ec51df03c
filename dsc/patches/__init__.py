"""From pictures to patches, and one way to read patches wherever they are."""

from dsc.images import CACHE_BYTES, Picture, open_pictures
from dsc.patches.arrays import ArrayPatches
from dsc.patches.config import PatchConfig
from dsc.patches.extract import extract_patches
from dsc.patches.materialize import materialize_span
from dsc.patches.patchset import as_source
from dsc.patches.scan import Grid
from dsc.patches.source import PatchSource
from dsc.patches.stored import StoredPatches, open_patches

__all__ = [
    "CACHE_BYTES",
    "ArrayPatches",
    "Grid",
    "PatchConfig",
    "PatchSource",
    "Picture",
    "StoredPatches",
    "as_source",
    "extract_patches",
    "materialize_span",
    "open_patches",
    "open_pictures",
]
