"""Classes of textures that may appear in any orientation."""
