"""Classes of textures that may appear in any orientation."""

from dsc.texture import schema as _schema  # noqa: F401 (registers what is stored)
