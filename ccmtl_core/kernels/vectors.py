"""Vector instructions for compiled loops: load numbers, add, multiply and sum them in registers.

LLVM makes vectors of loops, but keeps a sum of rows in memory, from where each row has to fetch it anew, and
does not see that rows of a few numbers are worth a vector. Here a vector is a part of a row and stays in
registers; LLVM lowers it to what a processor has (AVX, NEON, single numbers).

A row of P numbers is taken in parts of ``len(lanes)``, the last one so that it ends where the row does::

    for c in range(0, P, len(lanes)):
        at = min(c, P - len(lanes))

The first ``c - at`` numbers of that part belong to the part before as well. A sum over the row must leave
them out, and so must what is added to numbers in memory (:func:`later`); what replaces them is no different.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic, lower_builtin, models, overload, register_model, type_callable

Pointer: TypeAlias = Any
"""Of compiled code: where numbers begin. What reads and writes there checks nothing."""
Vector: TypeAlias = Any
"""Of compiled code: as many float64 as there are lanes."""
Lanes: TypeAlias = tuple[int, ...]
"""As many zeros as a vector has lanes, which makes their number a constant of the compiled loop."""

ANY: Lanes = (0,)
"""One lane: the loop takes any number of features, in single numbers."""
MOST_LANES = 8
LARGE = 20_000
"""Numbers in a table of rows, from which loops are worth a compilation for their number of features."""
_NUMBER, PLACE = ir.DoubleType(), ir.IntType(32)
_ALIGNMENT = 8  # of a number: rows begin anywhere
FUSED = ("contract",)  # a product and a sum may be rounded once


def lanes_for(n_rows: int, n_features: int) -> Lanes:
    """Return lanes for so many rows of P numbers: the most, or P of them, or one where that does not pay."""
    if n_features >= MOST_LANES:
        return (0,) * MOST_LANES
    return (0,) * (n_features if n_rows * n_features >= LARGE else 1)


def width(lanes: Lanes, n_features: int) -> int:
    """P, as a constant of the compiled loop where one vector holds a row."""
    return len(lanes) if 1 < len(lanes) < MOST_LANES else n_features


@overload(width)
def _compiledwidth(lanes, n_features):  # type: ignore[no-untyped-def] # numba refuses annotations here
    P = len(lanes)
    if 1 < P < MOST_LANES:
        return lambda lanes, n_features: P
    return lambda lanes, n_features: n_features


class VectorType(types.Type):
    """The type of a vector of float64."""

    def __init__(self, n_lanes: int) -> None:
        self.n_lanes = n_lanes
        super().__init__(name=f"Float64x{n_lanes}")


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, llvm_vector(kind))  # type: ignore[no-untyped-call] # numba has no types


def llvm_vector(kind: VectorType) -> ir.VectorType:
    """What holds it in registers: a power of two of numbers, as only those travel from loop to loop whole."""
    return ir.VectorType(_NUMBER, 1 << (kind.n_lanes - 1).bit_length())


def instruction(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's decorator, with the type of what compiled code calls: the first argument is numba's own."""
    compiled: Callable[..., Any] = intrinsic(function)
    return compiled


@instruction
def pointer(typing: Any, array: Any) -> Any:
    """Where the numbers of a contiguous array begin.

    Functions that are given an array count its users, which costs as much as a few rows; a pointer has none.
    An array of one's own must be used again after its pointer's last use, or it is let go of before.
    """
    if array.layout != "C":
        raise TypingError(
            f"an array must be contiguous for a pointer to tell where its rows are, not {array}"
        )

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(array)(context, builder, *arguments).data

    kind = types.CPointer(array.dtype)  # type: ignore[no-untyped-call] # as above
    return kind(array), generate


@instruction
def number(typing: Any, pointer: Any, i: Any) -> Any:
    """The number at position i."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer, i = arguments
        return builder.load(builder.gep(pointer, [i]))

    return pointer.dtype(pointer, types.int64), generate


@instruction
def load(typing: Any, pointer: Any, i: Any, lanes: Any) -> Any:
    """The vector of the numbers from position i on; those of single precision are widened."""
    kind = VectorType(len(lanes))
    of = ir.FloatType() if pointer.dtype == types.float32 else _NUMBER

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        start, place, _ = arguments
        return load_from(builder, kind, start, place, of)

    return kind(pointer, types.int64, lanes), generate


@instruction
def store(typing: Any, vector: Any, pointer: Any, i: Any) -> Any:
    """Write the vector to position i and on."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        store_to(builder, vector, *arguments)
        return context.get_dummy_value()

    return types.void(vector, pointer, types.int64), generate


@instruction
def zeros(typing: Any, lanes: Any) -> Any:
    """The vector of zeros."""
    kind = VectorType(len(lanes))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _zero(llvm_vector(kind))

    return kind(lanes), generate


@instruction
def total(typing: Any, vector: Any) -> Any:
    """The sum of the numbers of a vector."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = _narrowed(builder, vector, *arguments)
        of = numbers.type
        add = _of_llvm(builder, "llvm.vector.reduce.fadd", of, ir.FunctionType(_NUMBER, [_NUMBER, of]))
        return builder.call(add, [ir.Constant(_NUMBER, 0.0), numbers], fastmath=("reassoc",))

    return types.float64(vector), generate


@instruction
def absolute(typing: Any, vector: Any) -> Any:
    """The numbers of a vector without their signs."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        of = llvm_vector(vector)
        return builder.call(_of_llvm(builder, "llvm.fabs", of, ir.FunctionType(of, [of])), arguments)

    return vector(vector), generate


@instruction
def later(typing: Any, vector: Any, n: Any) -> Any:
    """The vector with zeros in place of its first n numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _from(builder, _zero(llvm_vector(vector)), *arguments)

    return vector(vector, types.int64), generate


@instruction
def replaced(typing: Any, old: Any, new: Any, n: Any) -> Any:
    """The new vector with the first n numbers of the old one."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _from(builder, *arguments)

    return old(old, old, types.int64), generate


def _from(builder: Any, old: Any, new: Any, n: Any) -> Any:
    """The numbers of the new vector from the n-th on, those of the old one before."""
    n_lanes = old.type.count
    first = splat(builder, builder.trunc(n, PLACE), n_lanes)
    kept = builder.icmp_signed(">=", places(list(range(n_lanes))), first)
    return builder.select(kept, new, old)


def _lowering(symbol: Callable[..., Any], *kinds: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Numba's decorator of what generates code for an operator, with a type."""
    decorate: Callable[[Callable[..., Any]], Callable[..., Any]]
    decorate = lower_builtin(symbol, *kinds)  # type: ignore[no-untyped-call] # as above
    return decorate


def _of_two_vectors(symbol: Callable[..., Any], instruction_name: str) -> None:
    """Let an operator between two vectors stand for an instruction of LLVM's."""

    @type_callable(symbol)
    def type_of(context: Any) -> Any:
        def typer(a: Any, b: Any) -> Any:
            return a if isinstance(a, VectorType) and a == b else None

        return typer

    @_lowering(symbol, VectorType, VectorType)
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction_name)(*arguments, flags=FUSED)


for _symbol in (operator.add, operator.iadd):
    _of_two_vectors(_symbol, "fadd")
for _symbol in (operator.sub, operator.isub):
    _of_two_vectors(_symbol, "fsub")
for _symbol in (operator.mul, operator.imul):
    _of_two_vectors(_symbol, "fmul")


@type_callable(operator.mul)
def _type_of_multiple(context: Any) -> Any:
    def typer(a: Any, b: Any) -> Any:
        return b if isinstance(a, types.Float) and isinstance(b, VectorType) else None

    return typer


@_lowering(operator.mul, types.Float, VectorType)
def _multiply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    factor, vector = arguments
    return builder.fmul(splat(builder, factor, vector.type.count), vector, flags=FUSED)


def splat(builder: Any, value: Any, n_lanes: int) -> Any:
    """The vector of n times the same value."""
    empty = ir.Constant(ir.VectorType(value.type, n_lanes), ir.Undefined)
    first = builder.insert_element(empty, value, ir.Constant(PLACE, 0))
    return builder.shuffle_vector(first, empty, places([0] * n_lanes))


def places(lanes: list[int]) -> ir.Constant:
    """Numbers of lanes, as LLVM is told them."""
    return ir.Constant(ir.VectorType(PLACE, len(lanes)), lanes)


def _of_llvm(builder: Any, name: str, of: ir.VectorType, kind: ir.FunctionType) -> Any:
    """A function of LLVM's own for vectors of this type."""
    full_name = f"{name}.v{of.count}f64"
    return cgutils.get_or_insert_function(builder.module, kind, full_name)  # type: ignore[no-untyped-call] # as above


def load_from(builder: Any, kind: VectorType, pointer: Any, i: Any, of: ir.Type = _NUMBER) -> Any:
    """LLVM's instructions for :func:`load`; registers end with zeros."""
    is_single = of != _NUMBER
    align = _ALIGNMENT // 2 if is_single else _ALIGNMENT
    numbers = builder.load(_address(builder, kind, pointer, i, of), align=align)
    n, size = kind.n_lanes, llvm_vector(kind).count
    if is_single:
        numbers = builder.fpext(numbers, ir.VectorType(_NUMBER, n))
    if n == size:
        return numbers
    return builder.shuffle_vector(numbers, _zero(numbers.type), places([min(k, n) for k in range(size)]))


def store_to(builder: Any, kind: VectorType, vector: Any, pointer: Any, i: Any) -> None:
    """LLVM's instructions for :func:`store`."""
    builder.store(_narrowed(builder, kind, vector), _address(builder, kind, pointer, i), align=_ALIGNMENT)


def _narrowed(builder: Any, kind: VectorType, vector: Any) -> Any:
    """The numbers of a vector without what registers hold beyond them."""
    if kind.n_lanes == vector.type.count:
        return vector
    return builder.shuffle_vector(vector, vector, places(list(range(kind.n_lanes))))


def _zero(of: ir.VectorType) -> ir.Constant:
    return ir.Constant(of, [0.0] * of.count)


def _address(builder: Any, kind: VectorType, pointer: Any, i: Any, of: ir.Type = _NUMBER) -> Any:
    row = ir.VectorType(of, kind.n_lanes)
    return builder.bitcast(builder.gep(pointer, [i]), row.as_pointer())
