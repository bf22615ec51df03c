"""From images to patches, and one way to read patches wherever they are."""

from dsc.patches import schema as _schema
from dsc.patches.arrays import ArrayPatches, as_source
from dsc.patches.config import PatchConfig
from dsc.patches.cut import cut_grid
from dsc.patches.extract import extract_many, extract_patches, is_set_of
from dsc.patches.scan import Grid
from dsc.patches.source import PatchSource
from dsc.patches.stored import StoredPatches, materialize_span, open_patches
