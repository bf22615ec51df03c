"""Maps of an image by its codes: which way structures run, and which atoms are at work."""

from dsc.maps.orientation import orientation
