"""The inner loop of the pass over rows: products of blocks of columns of [X y 1].

Pairs of blocks are taken two or three at a time, whose products stay in registers for ``ROWS`` rows.
"""

from __future__ import annotations

from typing import NamedTuple

from ccmtl_core.kernels.compiled import kernel
from ccmtl_core.kernels.statistics.gram_vectors import (
    BLOCK,
    LANES,
    add_products,
    add_to,
    no_products,
    replace_two,
    vector,
)
from ccmtl_core.kernels.vectors import Pointer, load, number

ROWS = 12


class Rows(NamedTuple):
    """Rows ``order[first:stop] + shift`` of [X y]."""

    X: Pointer
    y: Pointer
    width: int
    order: Pointer
    first: int
    stop: int
    shift: int


class Target(NamedTuple):
    """Where products are added, or where it is fresh written: a square of ``width``, from ``place`` on."""

    products: Pointer
    place: int
    width: int
    fresh: bool


@kernel
def add_rows(rows: Rows, starts: Pointer, groups: Pointer, n_groups: int, target: Target) -> None:
    """Add the products of each block with itself and with those after it."""
    if rows.width < LANES:
        _add_short_rows(rows, target)
        return
    products, _, width, fresh = target
    n_blocks = number(groups, n_groups)
    for g in range(n_groups):
        b, end = number(groups, g), number(groups, g + 1)
        first, second, third = number(starts, b), number(starts, b + 1), number(starts, end - 1)
        of_group = Target(products, LANES * b * (width + 1), width, fresh)
        if end - b == 3:
            _add_three_blocks(rows, (first, second, third), end == n_blocks, of_group)
        else:
            _add_two_blocks(rows, (first, second), end == n_blocks, of_group)
        for h in range(g + 1, n_groups):
            c, after = number(groups, h), number(groups, h + 1)
            first, second, third = number(starts, c), number(starts, c + 1), number(starts, after - 1)
            for p in range(b, end):
                of_pairs = Target(products, LANES * (p * width + c), width, fresh)
                start = number(starts, p)
                if after - c == 3:
                    _add_block_by_three(rows, start, (first, second, third), after == n_blocks, of_pairs)
                else:
                    _add_block_by_two(rows, start, (first, second), after == n_blocks, of_pairs)


@kernel
def _add_three_blocks(rows: Rows, starts: tuple[int, int, int], last: bool, target: Target) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a, b, c = no_products(starts), no_products(starts[1:]), no_products(starts[2:])
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v, w = (
                load(X, at + starts[0], BLOCK),
                load(X, at + starts[1], BLOCK),
                load(X, at + starts[2], BLOCK),
            )
            w = replace_two(w, number(y, row), 1.0, last)
            a = add_products(a, u, (u, v, w))
            b = add_products(b, v, (v, w))
            c = add_products(c, w, (w,))
        step = LANES * (size + 1)
        add_to(a, products, place, size, fresh)
        add_to(b, products, place + step, size, fresh)
        add_to(c, products, place + 2 * step, size, fresh)
        fresh = False


@kernel
def _add_two_blocks(rows: Rows, starts: tuple[int, int], last: bool, target: Target) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a, b = no_products(starts), no_products(starts[1:])
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v = load(X, at + starts[0], BLOCK), load(X, at + starts[1], BLOCK)
            v = replace_two(v, number(y, row), 1.0, last)
            a = add_products(a, u, (u, v))
            b = add_products(b, v, (v,))
        add_to(a, products, place, size, fresh)
        add_to(b, products, place + LANES * (size + 1), size, fresh)
        fresh = False


@kernel
def _add_block_by_three(
    rows: Rows, start: int, starts: tuple[int, int, int], last: bool, target: Target
) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a = no_products(starts)
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v, w = (
                load(X, at + starts[0], BLOCK),
                load(X, at + starts[1], BLOCK),
                load(X, at + starts[2], BLOCK),
            )
            w = replace_two(w, number(y, row), 1.0, last)
            a = add_products(a, load(X, at + start, BLOCK), (u, v, w))
        add_to(a, products, place, size, fresh)
        fresh = False


@kernel
def _add_block_by_two(rows: Rows, start: int, starts: tuple[int, int], last: bool, target: Target) -> None:
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    for i in range(first, stop, ROWS):
        a = no_products(starts)
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u, v = load(X, at + starts[0], BLOCK), load(X, at + starts[1], BLOCK)
            v = replace_two(v, number(y, row), 1.0, last)
            a = add_products(a, load(X, at + start, BLOCK), (u, v))
        add_to(a, products, place, size, fresh)
        fresh = False


@kernel
def _add_short_rows(rows: Rows, target: Target) -> None:
    """Add the products of up to three features and y with each other and with 1."""
    X, y, width, order, first, stop, shift = rows
    products, place, size, fresh = target
    second, third = min(1, width - 1), width - 1
    one = vector(1.0, 1.0, 1.0, 1.0)
    for i in range(first, stop, ROWS):
        a = no_products((0, 0))
        for j in range(i, min(i + ROWS, stop)):
            row = number(order, j) + shift
            at = row * width
            u = vector(number(X, at), number(X, at + second), number(X, at + third), number(y, row))
            a = add_products(a, u, (u, one))
        add_to(a, products, place, size, fresh)
        fresh = False
