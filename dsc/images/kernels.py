"""Compiled loops that decode pixels, and make values of them."""

from __future__ import annotations

from numba import njit

_compile = njit(cache=True, nogil=True, error_model="numpy")


@_compile
def decode_rle8(data, begin, width, pixels):
    """Decode the runs of a BMP from byte `begin` of its file on; returns how many pixels it has.

    data: (byte,) of the file. pixels: (y · x,), zeros; rows come in the order of the file.
    Two bytes (n, v) are n pixels of value v; (0, 0) ends a row, (0, 1) the image, (0, 2) goes on
    by (right, up), and (0, n) is followed by n pixels and a byte that makes the place in the file
    even. What goes beyond the end of a row is dropped, as in Pillow.
    """
    at, n, x = begin, 0, 0  # byte of the file, pixels so far, column
    while n < pixels.size and at + 2 <= data.size:
        count, value = int(data[at]), int(data[at + 1])
        at += 2
        if count > 0:
            count = max(0, min(count, width - x, pixels.size - n))
            pixels[n : n + count] = value
            n += count
            x += count
        elif value == 0:
            n = -(-n // width) * width
            x = 0
        elif value == 1:
            break
        elif value == 2:
            if at + 2 > data.size:
                break
            n = min(pixels.size, n + int(data[at]) + int(data[at + 1]) * width)
            x = n % width
            at += 2
        else:
            count = min(value, pixels.size - n, data.size - at)
            pixels[n : n + count] = data[at : at + count]
            n += count
            at += count
            x += value
            at += at % 2
    return n


@_compile
def look_up(pixels, table, out):
    """out = table[pixels]: (y, x) bytes, (256,) values; other threads go on meanwhile."""
    for y in range(pixels.shape[0]):
        for x in range(pixels.shape[1]):
            out[y, x] = table[pixels[y, x]]
