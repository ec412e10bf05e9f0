"""The vector instructions of the pass over rows: sums of products that stay in registers.

Sums over rows of products of columns are loops along an array only after rows were turned into columns, which
costs as much as the products: here vectors lie along a row, and each lane is a sum of its own.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from ccmtl_core.kernels.vectors import (
    FUSED,
    PLACE,
    Lanes,
    VectorType,
    instruction,
    llvm_vector,
    load_from,
    places,
    store_to,
)

LANES = 4
BLOCK: Lanes = (0,) * LANES

_vector = VectorType(LANES)


@instruction
def vector(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The vector of four numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _with(builder, ir.Constant(llvm_vector(_vector), ir.Undefined), arguments)

    return _vector(*[types.float64] * LANES), generate


@instruction
def replace_two(typing: Any, vector: Any, first: Any, second: Any, wanted: Any) -> Any:
    """The vector with two numbers in place of its first two, where that is wanted."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector, *numbers, wanted = arguments
        low = builder.shuffle_vector(vector, vector, places([0, 1]))
        low = builder.select(wanted, _with(builder, ir.Constant(low.type, ir.Undefined), numbers), low)
        low = builder.shuffle_vector(low, low, places([0, 1, 0, 1]))
        return builder.shuffle_vector(low, vector, places([0, 1, LANES + 2, LANES + 3]))

    return _vector(_vector, types.float64, types.float64, types.boolean), generate


@instruction
def no_products(typing: Any, like: Any) -> Any:
    """Zeros for the products of one vector with as many as the tuple has entries."""
    kind = types.UniTuple(_vector, LANES * len(like))  # type: ignore[no-untyped-call] # numba has no types

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero = ir.Constant(llvm_vector(_vector), [0.0] * LANES)
        return context.make_tuple(builder, kind, [zero] * len(kind))

    return kind(like), generate


@instruction
def add_products(typing: Any, products: Any, vector: Any, others: Any) -> Any:
    """``products[k, j] + vector[k] * others[j]`` for each of the four k, as a flat tuple."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        old, vector, right = arguments
        new = []
        for k in range(LANES):
            factor = builder.shuffle_vector(vector, vector, places([k] * LANES))
            for j in range(len(others)):
                product = builder.fmul(factor, builder.extract_value(right, j), flags=FUSED)
                total = builder.extract_value(old, k * len(others) + j)
                new.append(builder.fadd(product, total, flags=FUSED))
        return context.make_tuple(builder, products, new)

    return products(products, _vector, others), generate


@instruction
def add_to(typing: Any, products: Any, pointer: Any, i: Any, width: Any, fresh: Any) -> Any:
    """Add products to numbers in memory, those of ``vector[k]`` from position ``i + k * width`` on.

    Where that memory is fresh, they replace what it holds.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        values, pointer, i, width, fresh = arguments
        zero = ir.Constant(llvm_vector(_vector), [0.0] * LANES)
        n = len(products) // LANES
        for k in range(LANES):
            for j in range(n):
                column = builder.add(i, ir.Constant(i.type, LANES * j))
                value = builder.extract_value(values, k * n + j)
                old = builder.select(fresh, zero, load_from(builder, _vector, pointer, column))
                store_to(builder, _vector, builder.fadd(old, value), pointer, column)
            i = builder.add(i, width)
        return context.get_dummy_value()

    return types.void(products, pointer, types.int64, types.int64, types.boolean), generate


def _with(builder: Any, vector: Any, numbers: Any) -> Any:
    for k, number in enumerate(numbers):
        vector = builder.insert_element(vector, number, ir.Constant(PLACE, k))
    return vector
