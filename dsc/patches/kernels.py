"""Compiled loops of the patches.

Every patch is computed alone, by the same operations in the same order, so its bits do not depend
on its neighbours or on how the set is cut into parts.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float32, float64, int32, int64, njit, types, uint8, void

NOTHING = 1e-24  # energy after centering, as a part of all: float32 pixels vary by more, or not

# A rotated disk reaches half a pixel past its window, and a spline value needs three pixels on each
# side: windows of rotated patches begin and end so many pixels inside the image.
MARGIN = 3

_TAPS = 6  # samples along an axis that a quintic spline value is made of
_SCALE = 120.0 * 120.0  # of the products of weights below
_READ = types.Array(float32, 1, "C", readonly=True)
_ANY_2D = types.Array(float32, 2, "A", readonly=True)
_COEFFICIENTS = types.Array(float64, 2, "C", readonly=True)
_OUT = float32[:, ::1]
_INDEX = int64[::1]


def _compile(*signature):
    return njit(void(*signature), cache=True, nogil=True, error_model="numpy")


@njit(nogil=True, error_model="numpy", inline="never")
def _moments(out, p, first, n, center):
    """(mean, energy, energy around the mean) of n values of row p.

    Sums are in float64, in four strands that are added at the end.
    """
    last = first + n
    whole = last - n % 4
    s0 = s1 = s2 = s3 = 0.0
    e0 = e1 = e2 = e3 = 0.0
    for i in range(first, whole, 4):
        a, b = np.float64(out[p, i]), np.float64(out[p, i + 1])
        c, d = np.float64(out[p, i + 2]), np.float64(out[p, i + 3])
        s0, s1, s2, s3 = s0 + a, s1 + b, s2 + c, s3 + d
        e0, e1, e2, e3 = e0 + a * a, e1 + b * b, e2 + c * c, e3 + d * d
    for i in range(whole, last):
        a = np.float64(out[p, i])
        s0, e0 = s0 + a, e0 + a * a
    total = (e0 + e1) + (e2 + e3)
    if not center:
        return 0.0, total, total
    mean = ((s0 + s1) + (s2 + s3)) / n
    e0 = e1 = e2 = e3 = 0.0
    for i in range(first, whole, 4):
        a, b = np.float64(out[p, i]) - mean, np.float64(out[p, i + 1]) - mean
        c, d = np.float64(out[p, i + 2]) - mean, np.float64(out[p, i + 3]) - mean
        e0, e1, e2, e3 = e0 + a * a, e1 + b * b, e2 + c * c, e3 + d * d
    for i in range(whole, last):
        a = np.float64(out[p, i]) - mean
        e0 = e0 + a * a
    return mean, total, (e0 + e1) + (e2 + e3)


@njit(nogil=True, error_model="numpy", inline="never")
def _normalize(out, p, n_channels, center, unit):
    """Center each channel of row p, and scale all channels by one factor."""
    n = out.shape[1] // n_channels
    mean = total = energy = 0.0
    for first in range(0, out.shape[1], n):
        mean, a, b = _moments(out, p, first, n, center)
        total, energy = total + a, energy + b
    if energy <= NOTHING * total:
        for i in range(out.shape[1]):
            out[p, i] = np.float32(0)
        return
    scale = 1.0 / np.sqrt(energy) if unit else 1.0
    for first in range(0, out.shape[1], n):
        if n_channels > 1:
            mean, _, _ = _moments(out, p, first, n, center)
        for i in range(first, first + n):
            out[p, i] = np.float32((np.float64(out[p, i]) - mean) * scale)


@_compile(_READ, _INDEX, _INDEX, _INDEX, int64, boolean, boolean, _OUT)
def cut(image, start, row, offset, n_channels, center, unit, out):
    """Cut disks: out[row[i]] = image[start[i] + offset], centered and scaled.

    image is flat; start is where a patch's window begins in it, offset where the pixels of the
    disk are from there, those of one channel after those of the other.
    """
    normed = center or unit
    for i in range(start.size):
        p, begin = row[i], start[i]
        for k in range(offset.size):
            out[p, k] = image[begin + offset[k]]
        if normed:
            _normalize(out, p, n_channels, center, unit)


@_compile(_INDEX, int64, boolean, boolean, _OUT)
def normalize(row, n_channels, center, unit, out):
    """Center and scale rows."""
    for i in range(row.size):
        _normalize(out, row[i], n_channels, center, unit)


@njit(nogil=True, error_model="numpy", inline="never")
def _weights(t, weight):
    """120 × the B-spline weights of the six nearest samples, at t in [0, 1) after the third."""
    u = 1.0 - t
    t2, u2 = t * t, u * u
    weight[0] = u2 * u2 * u
    weight[1] = 26.0 + t * (-50.0 + t * (20.0 + t * (20.0 + t * (-20.0 + 5.0 * t))))
    weight[2] = 66.0 + t2 * (-60.0 + t2 * (30.0 - 10.0 * t))
    weight[3] = 66.0 + u2 * (-60.0 + u2 * (30.0 - 10.0 * u))
    weight[4] = 26.0 + u * (-50.0 + u * (20.0 + u * (20.0 + u * (-20.0 + 5.0 * u))))
    weight[5] = t2 * t2 * t


@_compile(_COEFFICIENTS, *[float64[::1]] * 5, _INDEX, int64, _OUT)
def cut_rotated(spline, y, x, rotation, dy, dx, row, first, out):
    """Sample disks rotated counter-clockwise about their centres (y, x) from spline coefficients.

    dy, dx (pixel,) are the disk's pixels from its centre; the one that lands there came from the
    place rotated back. They are written from column `first` on.
    """
    wy, wx = np.empty(_TAPS), np.empty(_TAPS)
    for i in range(y.size):
        cos, sin = np.cos(rotation[i]), np.sin(rotation[i])
        for k in range(dy.size):
            sy = y[i] + dx[k] * sin + dy[k] * cos
            sx = x[i] + dx[k] * cos - dy[k] * sin
            iy, ix = int(np.floor(sy)), int(np.floor(sx))
            _weights(sy - iy, wy)
            _weights(sx - ix, wx)
            value = 0.0
            for a in range(_TAPS):
                line = 0.0
                for b in range(_TAPS):
                    line += wx[b] * spline[iy - 2 + a, ix - 2 + b]
                value += wy[a] * line
            out[row[i], first + k] = np.float32(value / _SCALE)


@_compile(_ANY_2D, int64, int64, float64, types.Array(boolean, 2, "A"))
def keep_windows(image, side, stride, min_std, out):
    """out[i, j] = whether the window at (i, j) · stride has a standard deviation > min_std.

    The sample standard deviation (ddof = 1) of all pixels of the square, in float64, in two passes
    (mean, then deviations), a row of windows at a time. Columns that are `stride` apart are put
    beside each other first, so that inner loops go over windows and are contiguous: in
    line[x % stride], the pixels of column x of all windows begin at x // stride.
    """
    n_rows, n_columns = out.shape
    count, whole = side * side, side - side % 4
    n_lines, length = min(stride, side), n_columns + (side - 1) // stride
    lines = np.empty((side, n_lines, length), np.float32)  # of row y of the image at y % side
    sums = np.empty((n_lines, length))  # of columns
    mean, energy = np.empty(n_columns), np.empty(n_columns)
    n_read = 0  # rows of the image
    for i in range(n_rows):
        top = i * stride
        for y in range(max(top, n_read), top + side):
            for x in range(n_lines):
                own = image[y, x::stride]
                line = lines[y % side, x]
                for j in range(min(length, own.size)):
                    line[j] = own[j]
        n_read = top + side
        sums[:] = 0.0
        for y in range(top, top + side):
            for x in range(n_lines):
                line, total = lines[y % side, x], sums[x]
                for j in range(length):
                    total[j] += line[j]
        mean[:] = 0.0
        energy[:] = 0.0
        for x in range(side):
            total = sums[x % stride][x // stride :]
            for j in range(n_columns):
                mean[j] += total[j]
        for j in range(n_columns):
            mean[j] /= count
        for y in range(top, top + side):
            line = lines[y % side]
            for x in range(0, whole, 4):  # in the order of the pixels, whatever the stride
                a = line[x % stride][x // stride :]
                b = line[(x + 1) % stride][(x + 1) // stride :]
                c = line[(x + 2) % stride][(x + 2) // stride :]
                d = line[(x + 3) % stride][(x + 3) // stride :]
                for j in range(n_columns):
                    m = mean[j]
                    of_a, of_b, of_c, of_d = a[j] - m, b[j] - m, c[j] - m, d[j] - m
                    three = ((energy[j] + of_a * of_a) + of_b * of_b) + of_c * of_c
                    energy[j] = three + of_d * of_d
            for x in range(whole, side):
                a = line[x % stride][x // stride :]
                for j in range(n_columns):
                    of_a = a[j] - mean[j]
                    energy[j] += of_a * of_a
        for j in range(n_columns):
            out[i, j] = np.sqrt(energy[j] / (count - 1)) > min_std


@_compile(types.Array(uint8, 1, "C", readonly=True), *[int64] * 4, int32[::1], int32[::1])
def locate(bits, first, n_x, margin, stride, y, x):
    """(y, x) of the first pixels of the windows whose bit is set, the highest of a byte first.

    Windows are numbered row by row, n_x in a row; `first` is the number of the first bit's.
    """
    i, j, n = first // n_x, first % n_x, 0
    for byte in bits:
        if byte:
            row, column = i, j
            for k in range(8):
                if byte & (128 >> k):
                    y[n], x[n] = margin + row * stride, margin + column * stride
                    n += 1
                column += 1
                if column == n_x:
                    row, column = row + 1, 0
        j += 8
        while j >= n_x:
            i, j = i + 1, j - n_x


@_compile(types.Array(boolean, 2, "C", readonly=True), int64, _INDEX, types.Array(boolean, 2, "A"))
def keep_inside(inside, stride, offset, out):
    """out[i, j] stays if all of the disk in the window at (i, j) · stride is inside (y, x).

    offset (pixel,) is where the pixels of the disk are from the window's first, in flat rows.
    """
    flat, width = inside.ravel(), inside.shape[1]
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            begin = i * stride * width + j * stride
            for k in range(offset.size):
                if not flat[begin + offset[k]]:
                    out[i, j] = False
                    break
