"""Numbers in memory in, vectors of four in registers and their products out: for compiled kernels only.

LLVM makes vectors of loops that read along an array. Sums over rows of products of columns are such loops
only after rows were turned into columns, which costs as much as the products: here vectors lie along a row,
and each lane is a sum of its own. LLVM lowers them to what a processor has (AVX, NEON, single numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

LANES = 4

Pointer: TypeAlias = Any
"""Of compiled code: where numbers begin. What reads and writes there checks nothing."""

_NUMBER, _PLACE = ir.DoubleType(), ir.IntType(32)
_VECTOR = ir.VectorType(_NUMBER, LANES)
_ALIGNMENT = 8  # of a number: rows begin anywhere
_FUSED = ("contract",)  # a product and a sum may be rounded once


class VectorType(types.Type):
    """The type of a vector of ``LANES`` float64."""

    def __init__(self) -> None:
        super().__init__(name="Float64x4")


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call] # numba has no types


_vector = VectorType()


def _instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's decorator, with the type of what compiled code calls: the first argument is numba's own."""
    compiled: Callable[..., Any] = intrinsic(function)
    return compiled


@_instruction
def pointer(typing: Any, array: Any) -> Any:
    """Where the numbers of an array begin.

    Functions that are given an array count its users, which costs as much as a few rows; a pointer has none.
    Some array must hold on to the numbers.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(array)(context, builder, *arguments).data

    kind = types.CPointer(array.dtype)  # type: ignore[no-untyped-call] # as above
    return kind(array), generate


@_instruction
def number(typing: Any, pointer: Any, i: Any) -> Any:
    """The number at position i."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, i = arguments
        return builder.load(builder.gep(pointer, [i]))

    return pointer.dtype(pointer, types.int64), generate


@_instruction
def load(typing: Any, pointer: Any, i: Any) -> Any:
    """The vector of four numbers from position i on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _load(builder, _address(builder, *arguments))

    return _vector(pointer, types.int64), generate


@_instruction
def vector(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The vector of four numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _with(builder, ir.Constant(_VECTOR, ir.Undefined), arguments)

    return _vector(*[types.float64] * LANES), generate


@_instruction
def replace_two(typing: Any, vector: Any, first: Any, second: Any, wanted: Any) -> Any:
    """The vector with two numbers in place of its first two, where that is wanted."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, *numbers, wanted = arguments
        low = builder.shuffle_vector(vector, vector, _lanes(0, 1))
        low = builder.select(wanted, _with(builder, ir.Constant(low.type, ir.Undefined), numbers), low)
        low = builder.shuffle_vector(low, low, _lanes(0, 1, 0, 1))
        return builder.shuffle_vector(low, vector, _lanes(0, 1, LANES + 2, LANES + 3))

    return _vector(_vector, types.float64, types.float64, types.boolean), generate


@_instruction
def no_products(typing: Any, like: Any) -> Any:
    """Zeros for the products of one vector with as many as the tuple has entries."""
    kind = types.UniTuple(_vector, LANES * len(like))  # type: ignore[no-untyped-call] # as above

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        return context.make_tuple(builder, kind, [zero] * len(kind))

    return kind(like), generate


@_instruction
def add_products(typing: Any, products: Any, vector: Any, others: Any) -> Any:
    """``products[k, j] + vector[k] * others[j]`` for each of the four k, as a flat tuple."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        old, vector, right = arguments
        new = []
        for k in range(LANES):
            factor = builder.shuffle_vector(vector, vector, _lanes(*[k] * LANES))
            for j in range(len(others)):
                product = builder.fmul(factor, builder.extract_value(right, j), flags=_FUSED)
                total = builder.extract_value(old, k * len(others) + j)
                new.append(builder.fadd(product, total, flags=_FUSED))
        return context.make_tuple(builder, products, new)

    return products(products, _vector, others), generate


@_instruction
def add_to(typing: Any, products: Any, pointer: Any, i: Any, width: Any, fresh: Any) -> Any:
    """Add products to numbers in memory, those of ``vector[k]`` from position ``i + k * width`` on.

    Where that memory is fresh, they replace what it holds.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, pointer, i, width, fresh = arguments
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        n = len(products) // LANES
        for k in range(LANES):
            for j in range(n):
                column = builder.add(i, ir.Constant(i.type, LANES * j))
                address = _address(builder, pointer, column)
                value = builder.extract_value(values, k * n + j)
                old = builder.select(fresh, zero, _load(builder, address))
                _store(builder, builder.fadd(old, value), address)
            i = builder.add(i, width)
        return context.get_dummy_value()

    return types.void(products, pointer, types.int64, types.int64, types.boolean), generate


def _address(builder: Any, pointer: Any, i: Any) -> Any:
    return builder.bitcast(builder.gep(pointer, [i]), _VECTOR.as_pointer())


def _lanes(*lanes: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(_PLACE, len(lanes)), lanes)


def _with(builder: Any, vector: Any, numbers: Any) -> Any:
    for k, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, ir.Constant(_PLACE, k))
    return vector


def _load(builder: Any, address: Any) -> Any:
    return builder.load(address, align=_ALIGNMENT)


def _store(builder: Any, value: Any, address: Any) -> None:
    builder.store(value, address, align=_ALIGNMENT)
