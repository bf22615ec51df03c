"""Maps of an image by its codes: which way structures run, and which atoms are at work."""

from dsc.maps.features import KINDS, features
from dsc.maps.orientation import CROSSING, orientation
