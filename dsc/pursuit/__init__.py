"""Rotational orthogonal matching pursuit."""

from dsc.pursuit.omp import EMPTY, Codes, decode, encode

__all__ = ["EMPTY", "Codes", "decode", "encode"]
