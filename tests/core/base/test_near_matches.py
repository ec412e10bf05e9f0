"""Which known ids a mistyped one reminds of, and how fast."""

from __future__ import annotations

import time

import pytest

from ccmtl_core.base.near_matches import NearMatches

PRODUCTS = [f"{4710000000000 + 37 * i}" for i in range(23_812)]


@pytest.mark.parametrize(
    ("known", "typed"),
    [
        ("0471", "471"),
        ("0471", " 0471 "),
        ("Milk 1L", "milk 1l"),
        ("product-17/blue", "product-17/bleu"),
        ("product-17/blue", "roduct-17/blue"),
        ("北京烤鸭", "北京烤鸡"),
    ],
)
def test_slips_of_the_keyboard_are_recognised(known: str, typed: str) -> None:
    assert NearMatches(["something else", known, "zzz"]).find(typed) == [known]


@pytest.mark.parametrize("position", [0, 5, 12])
def test_one_wrong_digit_anywhere_in_a_long_list_is_recognised(position: int) -> None:
    right = PRODUCTS[12_345]
    wrong = right[:position] + "x" + right[position + 1 :]
    assert right in NearMatches(PRODUCTS).find(wrong)


def test_what_resembles_nothing_gets_nothing() -> None:
    assert NearMatches(PRODUCTS).find("umbrella") == []
    assert NearMatches([]).find("a") == []


def test_the_text_itself_is_no_match_and_the_number_is_bounded() -> None:
    found = NearMatches(["aaa1", "aaa2", "aaa3", "aaa4"]).find("aaa2", limit=2)
    assert found == ["aaa1", "aaa3"]


def test_a_search_among_many_ids_takes_milliseconds() -> None:
    matches = NearMatches(PRODUCTS)
    start = time.process_time()
    for i in range(20):
        matches.find(f"4710000{i:06d}")
    assert time.process_time() - start < 2


def test_a_very_long_text_is_not_compared() -> None:
    near = NearMatches([f"{number:06d}" for number in range(1000)])
    began = time.process_time()
    assert near.find("7" * 10_000_000) == []
    assert time.process_time() - began < 5.0
