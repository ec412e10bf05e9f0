"""Uploads of series: the library's report, the policies of the definition, and what becomes of history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.commands.cli import cli
from app.commands.option_names import in_command
from app.datasets.upload.option_names import in_request
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.inspection import Policies, inspect
from ccmtl_core.tables import ReadOptions
from tests.app.datasets.conftest import Shop

DAYS = [f"2024-03-{day:02d}" for day in range(1, 31)]
FAULTY = {
    "nothing": ("", {}),
    "two rows of a period": ("a,2024-03-30,5\n", {}),
    "two rows of a period, added": ("a,2024-03-30,5\n", {"duplicates": "sum"}),
    "returns": ("b,2024-03-01,-2\n", {}),
    "returns refused": ("b,2024-03-01,-2\n", {"negatives": "error"}),
    "no value": ("b,2024-03-01,\n", {}),
    "no value, absent": ("b,2024-03-01,\n", {"missing": "absent"}),
    "not sold yet": ("b,2024-03-01,0\nb,2024-03-02,4\n", {"leading_zeros": "drop"}),
    "a gap": ("b,2024-03-01,1\nb,2024-03-05,4\n", {}),
    "no number": ("b,2024-03-01,many\n", {}),
    "shifted": ("b,2024-03-01,1,2\n", {}),
    "a quote that is never closed": ('"b,2024-03-01,1\n', {}),
    "the header once more": ("unique_id,ds,y\nb,2024-03-01,7\n", {}),
    "a footer below a blank line": ("\nTotal: 7\n", {}),
}


def history(extra: str = "") -> str:
    return "unique_id,ds,y\n" + "".join(f"a,{day},{i % 6 + 1}\n" for i, day in enumerate(DAYS)) + extra


def found(report: dict[str, Any]) -> dict[str, int]:
    return {finding["code"]: finding["count"] for finding in report["findings"]}


def accounts(report: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(report[name] for name in ("rows_read", "rows_used", "rows_merged", "rows_dropped"))


@pytest.mark.parametrize("name", FAULTY)
def test_library_command_and_upload_say_the_same(shop: Shop, tmp_path: Path, name: str) -> None:
    extra, policies = FAULTY[name]
    path = tmp_path / "sales.csv"
    path.write_text(history(extra))
    answer = shop.upload(shop.series(**policies), path.read_text(), dry_run=True).json()
    uploaded = answer["report"]["inspection"] if "dataset" in answer else answer["report"]
    report = inspect(path, frequency="D", policies=Policies(**policies))
    ours = report.to_dict()
    options = [f"--{policy.replace('_', '-')}={value}" for policy, value in policies.items()]
    printed = json.loads(
        CliRunner().invoke(cli, ["inspect", str(path), "--frequency=D", "--json", *options]).stdout
    )
    assert accounts(uploaded) == accounts(printed) == accounts(ours)
    assert found(uploaded) == found(printed) == found(ours)
    for told, words in ((uploaded, in_request), (printed, in_command)):
        assert told["findings"] == json.loads(json.dumps(report.worded(words).to_dict()["findings"]))
    if "dataset" not in answer:
        refused = {finding["code"] for finding in ours["findings"] if finding["severity"] == "error"}
        assert {fault["code"] for fault in answer["errors"]} == refused


EMPTIED = {
    "no row has a value": ("a,2024-03-01,\na,2024-03-02,\n", {"missing": "absent"}, {}, "empty_number"),
    "all rows are ragged": ("a,2024-03-01,5,x\na,2024-03-02,5,x\n", {}, {"ragged": "skip"}, "no_rows"),
    "one period, which is not over": (
        "a,2024-03-01,5\na,2024-03-02,6\n",
        {"partial_last": "drop", "duplicates": "sum"},
        {},
        "partial_last",
    ),
}


@pytest.mark.parametrize("name", EMPTIED)
def test_a_file_of_which_no_row_is_left_has_an_error(shop: Shop, tmp_path: Path, name: str) -> None:
    rows, policies, dialect, code = EMPTIED[name]
    path = tmp_path / "sales.csv"
    path.write_text(f"unique_id,ds,y\n{rows}")
    problem = shop.refused(shop.series(frequency="MS", **policies), path.read_text(), **dialect)
    options = [f"--{key.replace('_', '-')}={value}" for key, value in {**policies, **dialect}.items()]
    command = ["inspect", str(path), "--frequency=MS"]
    printed = CliRunner().invoke(cli, [*command, "--json", *options])
    report = inspect(path, frequency="MS", policies=Policies(**policies), dialect=ReadOptions(**dialect))
    with pytest.raises(DataError, match="leaves out 2 rows"):
        report.require_panel()
    (error,) = report.errors
    assert (error.code, report.accounts.rows_dropped) == ("no_rows", {code: 2})
    assert [fault["code"] for fault in problem["errors"]] == ["no_rows"]
    assert "1 fault (1 no_rows)" in problem["detail"]
    for told, words in ((problem["report"], in_request), (json.loads(printed.stdout), in_command)):
        assert found(told) == report.counts
        assert told["findings"] == json.loads(json.dumps(report.worded(words).to_dict()["findings"]))
    assert "1 of these is an error" in CliRunner().invoke(cli, [*command, *options]).stdout


@pytest.mark.parametrize("mode", ["full", "append"])
def test_an_upload_counts_the_values_that_filling_adds(shop: Shop, mode: str) -> None:
    name = shop.series(fill={"method": "zero", "start": "dataset"})
    shop.accepted(name, "unique_id,ds,y\n" + "".join(f"a,{day},1\n" for day in DAYS[:12]))
    rows = DAYS[:12] if mode == "full" else []
    body = "unique_id,ds,y\n" + "".join(f"a,{day},1\n" for day in [*rows, *DAYS[20:]])
    report = shop.accepted(name, body, mode=mode)
    assert (report["filled_periods"], report["inspection"]["values_added"]) == (8, {"fill": 8})
    assert report["inspection"]["values"] == report["inspection"]["rows_used"] + 8


def test_a_row_of_a_stored_period_is_told_with_its_series_and_period(shop: Shop) -> None:
    name = shop.series()
    shop.accepted(name, history())
    problem = shop.upload(name, "unique_id,ds,y\na,2024-03-30,9\na,2024-03-31,9\n", mode="append").json()
    (finding,) = (one for one in problem["report"]["findings"] if one["code"] == "duplicate_period")
    expected = {"row": 1, "unique_id": "a", "ds": "2024-03-30", "value": "9", "file": None}
    assert finding["samples"] == [expected]
    assert problem["errors"][0]["value"] == "a"


def test_an_upload_names_the_column_that_tells_rows_of_a_period_apart(shop: Shop, tmp_path: Path) -> None:
    rows = [f"{store},{line}" for line in history().splitlines()[1:] for store in ("01", "02")]
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(["store,unique_id,ds,y", *rows]))
    report = shop.refused(shop.series(), path.read_text())["report"]
    ours = inspect(path, frequency="D").worded(in_request).to_dict()
    assert report["findings"] == json.loads(json.dumps(ours["findings"]))
    assert 'state `"unique_id": ["unique_id", "store"]`' in report["findings"][0]["message"]


def test_what_the_policies_drop_is_not_stored(shop: Shop) -> None:
    name = shop.series(leading_zeros="drop", missing="absent", negatives="clip")
    report = shop.accepted(name, history("b,2024-03-01,0\nb,2024-03-02,4\nb,2024-03-03,\nb,2024-03-04,-1\n"))
    assert report["inspection"]["rows_dropped"] == {"empty_number": 1, "leading_zeros": 1}
    assert report["inspection"]["values_changed"] == {"negatives": 1}
    assert (report["rows"], report["version"]["values"], report["aggregated_rows"]) == (34, 32, 0)


def test_dates_are_read_as_the_whole_column_shows(shop: Shop) -> None:
    body = "unique_id,ds,y\n" + "".join(f"a,{day}/3/2024,{day}\n" for day in range(1, 20))
    report = shop.accepted(shop.series(), body)
    assert report["inspection"]["traits"]["ds_format"]["value"] == "%d/%m/%Y"
    assert (report["first"], report["last"]) == ("2024-03-01", "2024-03-19")


def test_dates_of_two_readings_are_refused_with_both(shop: Shop) -> None:
    problem = shop.refused(shop.series(), "unique_id,ds,y\na,01/02/2024,5\na,02/02/2024,5\n")
    assert [fault["code"] for fault in problem["errors"]] == ["ambiguous_dates"]
    assert '`"ds_format": "%d/%m/%Y"`' in problem["errors"][0]["message"]
    assert '`"ds_format": "%m/%d/%Y"`' in problem["errors"][0]["message"]


def test_a_replacement_says_which_history_it_changes_and_lacks(shop: Shop) -> None:
    name = shop.series()
    shop.accepted(name, history("b,2024-03-01,7\n"))
    report = shop.accepted(name, history().replace("a,2024-03-04,4", "a,2024-03-04,9"))["inspection"]
    of_history = {code: count for code, count in found(report).items() if code.startswith("history")}
    assert of_history == {"history_changed": 1, "history_removed": 1, "history_repeated": 29}
    samples = {finding["code"]: finding["samples"] for finding in report["findings"]}
    assert samples["history_changed"] == [
        {"row": None, "unique_id": "a", "ds": "2024-03-04", "value": "4 → 9", "file": None}
    ]
    assert [sample["unique_id"] for sample in samples["history_removed"]] == ["b"]


def test_an_append_that_changes_history_says_so(shop: Shop) -> None:
    name = shop.series(duplicates="last")
    shop.accepted(name, history())
    refused = shop.upload(name, "unique_id,ds,y\na,2024-03-30,8\n", mode="append")
    assert (refused.status_code, found(refused.json()["report"])["history_changed"]) == (409, 1)
    report = shop.accepted(
        name, "unique_id,ds,y\na,2024-03-30,8\na,2024-03-31,2\n", mode="append", overlap="accept"
    )
    assert found(report["inspection"])["history_changed"] == 1
    assert report["version"]["values"] == 31


def test_zeros_of_a_series_that_has_begun_are_not_leading_ones(shop: Shop) -> None:
    name = shop.series(leading_zeros="drop")
    shop.accepted(name, history())
    report = shop.accepted(
        name,
        "unique_id,ds,y\na,2024-03-31,0\na,2024-04-01,3\nc,2024-04-01,0\nc,2024-04-02,1\n",
        mode="append",
    )
    assert report["inspection"]["rows_dropped"] == {"leading_zeros": 1}


def test_the_older_name_of_a_policy_is_taken(shop: Shop) -> None:
    name = shop.series(aggregation="mean")
    assert shop.client.get(f"/v1/datasets/{name}").json()["duplicates"] == "mean"


def test_an_append_counts_whole_series_and_not_the_file_alone(shop: Shop) -> None:
    name = shop.series()
    shop.accepted(name, history("b,2024-03-01,7\n"))
    rows = "unique_id,ds,y\na,2024-04-02,8\nb,2024-03-04,7\nc,2024-04-02,1\nc,2024-04-03,1\nA,2024-04-03,2\n"
    report = shop.accepted(name, rows, mode="append")
    told = {finding["code"]: finding for finding in report["inspection"]["findings"]}
    of_version = {warning["code"]: warning for warning in report["warnings"]}
    for code in ("absent_periods", "series_ended"):
        assert (told[code]["count"], told[code]["message"]) == (
            of_version[code]["count"],
            of_version[code]["message"],
        )
    assert told["absent_periods"]["count"] == 4
    assert [sample["unique_id"] for sample in told["short_series"]["samples"]] == ["A", "b", "c"]
    assert told["constant_series"]["message"].startswith("1 of 2 series never change")
    assert told["similar_ids"]["message"].startswith("2 ids differ only by capitals, spaces, leading zeros")


def test_every_finding_that_is_a_warning_stands_among_the_warnings(shop: Shop) -> None:
    name = shop.series()
    before = shop.accepted(name, history("b,2024-03-01,7\n"))
    whole = history().replace("2024-03-07,1\n", "2024-03-07,600\n")
    report = shop.accepted(name, whole + "A,2024-03-30,2\n")
    told = {warning["code"]: warning["count"] for warning in report["warnings"]}
    assert told.items() >= {
        ("history_changed", 1),
        ("history_removed", 1),
        ("outliers", 1),
        ("similar_ids", 2),
    }
    for one in (before, report):
        found_ones = {f["code"]: f for f in one["inspection"]["findings"] if f["severity"] == "warning"}
        among = {w["code"]: (w["message"], w["count"]) for w in one["warnings"]}
        assert {code: (f["message"], f["count"]) for code, f in found_ones.items()}.items() <= among.items()


def test_words_for_yes_and_no_are_told_to_be_1_and_0(shop: Shop) -> None:
    text = "unique_id,ds,y,offer\na,2024-03-01,1,ja\na,2024-03-02,1,Nein\na,2024-03-03,1,often\n"
    name = shop.series(columns={"future": ["offer"]})
    first, second, other = (fault["message"] for fault in shop.refused(name, text)["errors"])
    assert first == second == f"{other}; if the column says yes or no, write 1 and 0"


def test_filled_periods_without_a_price_are_warned_of(shop: Shop) -> None:
    text = "unique_id,ds,y,price\na,2024-03-01,1,2\na,2024-03-05,1,2\nb,2024-03-01,4,3\n"
    fill = {"method": "zero"}
    for beside, n in (({"future": ["price"]}, 7), ({"past": ["price"]}, 7), ({}, None)):
        name = shop.series(columns=beside, fill=fill)
        report = shop.accepted(name, text)
        counts = {one["code"]: one["count"] for one in report["warnings"]}
        assert (report["filled_periods"], counts.get("filled_without_columns")) == (7, n)
    assert "filled_without_columns" not in found(
        shop.accepted(shop.series(columns={"future": ["price"]}), text)["inspection"]
    )
    holiday = shop.series(columns={"future": ["price"]}, fill=fill)
    of_all = shop.accepted(holiday, text.replace("4,3", "4,2"))
    assert (of_all["filled_periods"], found(of_all["inspection"]).get("filled_without_columns")) == (7, None)


def test_what_an_append_changes_is_told_as_the_policies_make_it(shop: Shop) -> None:
    name = shop.series(duplicates="last", negatives="clip")
    shop.accepted(name, history("b,2024-03-01,1\nb,2024-03-02,-4\n"))
    sent = "unique_id,ds,y\nb,2024-03-01,-1\nb,2024-03-02,-9\n"
    report = shop.accepted(name, sent, mode="append", overlap="accept")["inspection"]
    told = {finding["code"]: finding for finding in report["findings"]}
    assert [sample["value"] for sample in told["history_changed"]["samples"]] == ["1 → 0"]
    assert told["history_repeated"]["count"] == 1
    removed = shop.accepted(name, history())["inspection"]["findings"]
    gone = next(finding for finding in removed if finding["code"] == "history_removed")
    assert {sample["value"] for sample in gone["samples"]} == {"0"}


@pytest.mark.parametrize(
    ("policies", "sent", "told"),
    [
        ({"duplicates": "sum"}, "10", ["10 → 20"]),
        ({"duplicates": "sum"}, "0", []),
        ({"duplicates": "mean"}, "10", []),
        ({"duplicates": "mean"}, "40", ["10 → 25"]),
        ({"duplicates": "last"}, "10", []),
        ({"duplicates": "sum", "negatives": "clip"}, "-8", ["10 → 2"]),
    ],
)
def test_an_append_is_told_by_the_values_that_it_makes(
    shop: Shop, policies: dict[str, str], sent: str, told: list[str]
) -> None:
    name = shop.series(**policies)
    shop.accepted(name, "unique_id,ds,y\na,2024-03-01,10\na,2024-03-02,3\n")
    text = f"unique_id,ds,y\na,2024-03-01,{sent}\na,2024-03-03,1\n"
    report = shop.accepted(name, text, mode="append", overlap="accept")["inspection"]
    by_code = {finding["code"]: finding for finding in report["findings"]}
    of_change = by_code.get("history_changed", {"samples": [], "message": ""})
    assert [sample["value"] for sample in of_change["samples"]] == told
    if told:
        how = json.dumps(policies["duplicates"])
        assert of_change["message"].startswith(
            f'The file changes 1 stored value, as `"duplicates": {how}` puts'
        )
    else:
        assert by_code["history_repeated"]["message"] == "The file leaves 1 stored value as before."


@pytest.mark.parametrize(("policies", "status"), [({}, 422), ({"duplicates": "sum"}, 409)])
def test_a_refused_append_tells_the_gaps_of_the_version_that_it_would_make(
    shop: Shop, policies: dict[str, str], status: int
) -> None:
    name = shop.series(**policies)
    shop.accepted(name, history())
    answer = shop.upload(name, "unique_id,ds,y\na,2024-03-30,6\na,2024-04-02,6\n", mode="append")
    assert answer.status_code == status
    report = answer.json()["report"]
    told = found(report)
    assert told.get("duplicate_period", 0) == (0 if policies else 1)
    assert (told["absent_periods"], told["history_changed" if policies else "history_repeated"]) == (2, 1)
