"""Disks under the names that the texture pages still import."""

from dsc.dictionary.plot import Shades as Shades
from dsc.dictionary.plot import atom_shades as atom_shades
from dsc.report.render import png_url as data_url

__all__ = ["Shades", "atom_shades", "data_url"]
