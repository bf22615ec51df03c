"""Explicit vectors of eight and of sixteen lanes for Numba kernels.

Numba leaves vectorising to LLVM, which decides anew for every loop and array type. The kernels
here say it themselves: a value of type `f32x8` is one LLVM vector, and each function below is one
instruction on it. Two things follow. Accumulators stay in registers, and every lane goes through
exactly the written operations in the written order (a fused multiply-add is fused on every CPU),
so the bits of a result do not depend on where in a batch a patch happens to stand.

Sixteen float32 are one register where the CPU has such wide ones, else two: their names end in 16.

`load` and `store` trust their index: it must have a whole vector of contiguous elements behind it.
What is loaded most is made by `aligned_zeros`: a vector in two cache lines takes twice as long.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

LANES = 8
LINE = 64  # bytes of a cache line

_FLOAT, _DOUBLE = ir.FloatType(), ir.DoubleType()
_VECTOR, _WIDE = ir.VectorType(_FLOAT, LANES), ir.VectorType(_DOUBLE, LANES)
_VECTOR16 = ir.VectorType(_FLOAT, 2 * LANES)


class F32x8(types.Type):
    """Eight float32."""

    def __init__(self) -> None:
        super().__init__(name="f32x8")


class F64x8(types.Type):
    """Eight float64, for sums."""

    def __init__(self) -> None:
        super().__init__(name="f64x8")


class F32x16(types.Type):
    """Sixteen float32."""

    def __init__(self) -> None:
        super().__init__(name="f32x16")


f32x8, f64x8, f32x16 = F32x8(), F64x8(), F32x16()


@register_model(F32x8)
class _F32x8Model(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VECTOR)


@register_model(F64x8)
class _F64x8Model(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _WIDE)


@register_model(F32x16)
class _F32x16Model(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, _VECTOR16)


def _pointer(context, builder, array_type, array, index_type, index, kind):
    if isinstance(index_type, types.BaseTuple):
        indices = cgutils.unpack_tuple(builder, index, index_type.count)
        kinds = list(index_type)
    else:
        indices, kinds = [index], [index_type]
    indices = [context.cast(builder, i, k, types.intp) for i, k in zip(indices, kinds, strict=True)]
    view = context.make_array(array_type)(context, builder, array)
    pointer = cgutils.get_item_pointer(context, builder, array_type, view, indices)
    return builder.bitcast(pointer, ir.PointerType(kind))


def _vector_of(array):
    """The vector type of a C-contiguous array of floats; None for anything else."""
    if not isinstance(array, types.Array) or array.layout != "C":
        return None
    return {types.float32: f32x8, types.float64: f64x8}.get(array.dtype)


@intrinsic
def load(typingctx, array, index):
    """Eight consecutive elements of a C-contiguous array of floats, from `index` on."""
    vector = _vector_of(array)
    if vector is None:
        return None

    def codegen(context, builder, signature, args):
        array_type, index_type = signature.args
        kind = context.get_value_type(vector)
        pointer = _pointer(context, builder, array_type, args[0], index_type, args[1], kind)
        return builder.load(pointer, align=4)

    return vector(array, index), codegen


@intrinsic
def load16(typingctx, array, index):
    """Sixteen consecutive elements of a C-contiguous array of float32, from `index` on."""
    if _vector_of(array) != f32x8:
        return None

    def codegen(context, builder, signature, args):
        array_type, index_type = signature.args
        pointer = _pointer(context, builder, array_type, args[0], index_type, args[1], _VECTOR16)
        return builder.load(pointer, align=4)

    return f32x16(array, index), codegen


@intrinsic
def store(typingctx, array, index, value):
    """Write consecutive elements, as many as the vector has."""
    kind = _vector_of(array)
    if kind is None or value not in ((f32x8, f32x16) if kind == f32x8 else (f64x8,)):
        return None

    def codegen(context, builder, signature, args):
        array_type, index_type, _ = signature.args
        kind = context.get_value_type(value)
        pointer = _pointer(context, builder, array_type, args[0], index_type, args[1], kind)
        builder.store(args[2], pointer, align=4)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen


def _repeat(builder, scalar, lanes=LANES):
    undefined = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    vector = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(vector, undefined, mask)


@intrinsic
def splat(typingctx, value):
    """One float32 in all lanes."""
    if value != types.float32:
        return None

    def codegen(context, builder, signature, args):
        return _repeat(builder, args[0])

    return f32x8(value), codegen


@intrinsic
def splat16(typingctx, value):
    """One float32 in all sixteen lanes."""
    if value != types.float32:
        return None

    def codegen(context, builder, signature, args):
        return _repeat(builder, args[0], 2 * LANES)

    return f32x16(value), codegen


@intrinsic
def load_one(typingctx, array, index):
    """The element at `index`, in all lanes."""
    vector = _vector_of(array)
    if vector is None:
        return None

    def codegen(context, builder, signature, args):
        array_type, index_type = signature.args
        kind = context.get_value_type(vector).element
        pointer = _pointer(context, builder, array_type, args[0], index_type, args[1], kind)
        return _repeat(builder, builder.load(pointer, align=4))

    return vector(array, index), codegen


@intrinsic
def load_one16(typingctx, array, index):
    """The element at `index` of an array of float32, in all sixteen lanes."""
    if _vector_of(array) != f32x8:
        return None

    def codegen(context, builder, signature, args):
        array_type, index_type = signature.args
        pointer = _pointer(context, builder, array_type, args[0], index_type, args[1], _FLOAT)
        return _repeat(builder, builder.load(pointer, align=4), 2 * LANES)

    return f32x16(array, index), codegen


@intrinsic
def zeros16(typingctx):
    """Sixteen float32 zeros."""

    def codegen(context, builder, signature, args):
        return ir.Constant(_VECTOR16, [0.0] * 2 * LANES)

    return f32x16(), codegen


@intrinsic
def zeros(typingctx):
    """Eight float32 zeros."""

    def codegen(context, builder, signature, args):
        return ir.Constant(_VECTOR, [0.0] * LANES)

    return f32x8(), codegen


@intrinsic
def zeros_wide(typingctx):
    """Eight float64 zeros."""

    def codegen(context, builder, signature, args):
        return ir.Constant(_WIDE, [0.0] * LANES)

    return f64x8(), codegen


def _elementwise(build, document):
    """An intrinsic of two vectors, from the builder's method that makes the instruction."""

    def operation(typingctx, a, b):
        if a != b or a not in (f32x8, f32x16):
            return None

        def codegen(context, builder, signature, args):
            return build(builder, *args)

        return a(a, b), codegen

    operation.__doc__ = document
    return intrinsic(operation)


@intrinsic
def where_larger(typingctx, a, b, yes, no):
    """`yes` in the lanes where a > b, else `no`."""
    if not (a == b == yes == no and a in (f32x8, f32x16)):
        return None

    def codegen(context, builder, signature, args):
        return builder.select(builder.fcmp_ordered(">", args[0], args[1]), args[2], args[3])

    return a(a, b, yes, no), codegen


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


add = _elementwise(ir.IRBuilder.fadd, "a + b.")
sub = _elementwise(ir.IRBuilder.fsub, "a - b.")
mul = _elementwise(ir.IRBuilder.fmul, "a * b.")
divide = _elementwise(ir.IRBuilder.fdiv, "a / b.")
maximum = _elementwise(_larger, "The larger one, lane by lane (b where they do not compare).")


def _call(builder, name, *args):
    """Call the LLVM intrinsic `name` of one type; llvmlite does not spell the names of vectors."""
    kind = args[0].type
    if isinstance(kind, ir.VectorType):
        suffix = f"v{kind.count}{kind.element.intrinsic_name}"
    else:
        suffix = kind.intrinsic_name
    function_type = ir.FunctionType(kind, [kind] * len(args))
    function = cgutils.get_or_insert_function(
        builder.module, function_type, f"llvm.{name}.{suffix}"
    )
    return builder.call(function, args)


@intrinsic
def fma(typingctx, a, b, c):
    """a * b + c, rounded once: on vectors, or on three float32 with the same bits as a lane's."""
    if not (a == b == c and a in (f32x8, f32x16, f64x8, types.float32)):
        return None

    def codegen(context, builder, signature, args):
        return _call(builder, "fma", *args)

    return a(a, b, c), codegen


@intrinsic
def fnma(typingctx, a, b, c):
    """c - a * b, rounded once."""
    if not (a == b == c and a in (f32x8, f32x16)):
        return None

    def codegen(context, builder, signature, args):
        return _call(builder, "fma", builder.fneg(args[0]), args[1], args[2])

    return a(a, b, c), codegen


@intrinsic
def fma_wide(typingctx, a, b, c):
    """c + a * b in float64, where the product of two float32 is exact."""
    if a != f32x8 or b != f32x8 or c != f64x8:
        return None

    def codegen(context, builder, signature, args):
        wide = [builder.fpext(value, _WIDE) for value in args[:2]]
        return _call(builder, "fma", *wide, args[2])

    return f64x8(a, b, c), codegen


@intrinsic
def absolute(typingctx, a):
    """|a|."""
    if a not in (f32x8, f32x16):
        return None

    def codegen(context, builder, signature, args):
        return _call(builder, "fabs", args[0])

    return a(a), codegen


@intrinsic
def square_root(typingctx, a):
    """The correctly rounded square root."""
    if a not in (f32x8, f32x16):
        return None

    def codegen(context, builder, signature, args):
        return _call(builder, "sqrt", args[0])

    return a(a), codegen


def _fold(builder, vector, combine):
    """Reduce the lanes by halves: (0 with 4, 1 with 5, …), then quarters, then the last two."""
    undefined = ir.Constant(vector.type, ir.Undefined)
    width = vector.type.count // 2
    while width:
        lanes = [(i + width) % vector.type.count for i in range(vector.type.count)]
        mask = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), lanes)
        vector = combine(builder, vector, builder.shuffle_vector(vector, undefined, mask))
        width //= 2
    return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))


@intrinsic
def reverse(typingctx, a):
    """The lanes in the opposite order."""
    if a not in (f32x8, f32x16):
        return None

    def codegen(context, builder, signature, args):
        kind = args[0].type
        lanes = list(reversed(range(kind.count)))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), lanes)
        return builder.shuffle_vector(args[0], ir.Constant(kind, ir.Undefined), mask)

    return a(a), codegen


@intrinsic
def largest(typingctx, a):
    """The largest lane."""
    if a not in (f32x8, f32x16):
        return None

    def codegen(context, builder, signature, args):
        return _fold(builder, args[0], _larger)

    return types.float32(a), codegen


@intrinsic
def total_wide(typingctx, a):
    """The sum of the eight float64 lanes."""
    if a != f64x8:
        return None

    def codegen(context, builder, signature, args):
        return _fold(builder, args[0], ir.IRBuilder.fadd)

    return types.float64(a), codegen


@intrinsic
def transpose(typingctx, a, b, c, d, e, f, g, h):
    """Eight vectors as the columns of what they were the rows of."""
    rows = (a, b, c, d, e, f, g, h)
    if any(row != f32x8 for row in rows):
        return None
    result = types.UniTuple(f32x8, LANES)

    def codegen(context, builder, signature, args):
        def shuffle(x, y, lanes):
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes)
            return builder.shuffle_vector(x, y, mask)

        # exchange blocks of 4, then 2, then 1: each round swaps two off-diagonal quarters
        vectors = list(args)
        for width in (4, 2, 1):
            low = [i if not i & width else i - width + LANES for i in range(LANES)]
            high = [i + width if not i & width else i + LANES for i in range(LANES)]
            for i in range(LANES):
                if not i & width:
                    x, y = vectors[i], vectors[i + width]
                    vectors[i], vectors[i + width] = shuffle(x, y, low), shuffle(x, y, high)
        return context.make_tuple(builder, result, vectors)

    return result(*rows), codegen


@intrinsic
def reaches(typingctx, a, b):
    """A bit for each lane where a >= b, that of lane 0 the lowest."""
    if a != b or a not in (f32x8, f32x16):
        return None

    def codegen(context, builder, signature, args):
        lanes = args[0].type.count
        bits = builder.bitcast(builder.fcmp_ordered(">=", *args), ir.IntType(lanes))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(a, b), codegen


@intrinsic
def lowest_bit(typingctx, bits):
    """The place of the lowest bit that is set; there must be one."""
    if bits != types.int64:
        return None

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(bits), codegen


@njit(cache=True, nogil=True, error_model="numpy")
def aligned_zeros(n):
    """(n,) float32 zeros that begin where a cache line does."""
    room = np.zeros(n + LINE // 4, np.float32)
    skip = (-room.ctypes.data % LINE) // 4
    return room[skip : skip + n]
