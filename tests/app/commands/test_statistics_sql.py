"""``ccmtl statistics-sql``: run for real on DuckDB and PostgreSQL; for other databases, parsed as written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import psycopg
import pytest
import sqlglot
from psycopg import sql
from sqlalchemy import make_url
from sqlglot import exp
from typer.testing import CliRunner, Result

from app.commands.cli import cli
from app.commands.statistics_sql import Dialect, statistics_sql
from ccmtl_core import (
    DataError,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    fit,
    read_statistics,
    read_statistics_folds,
    statistics_frame,
)

TASK, TARGET, FEATURES, DAY = 'Store № "A"', "sold units", ["price`s", "Menge, groß", "promo\\"], "day"
CUTS = ["2001-01-10", "2001-01-20"]
RELATIVE = 1e-10


@pytest.fixture(scope="module")
def sales() -> pl.DataFrame:
    """Integers with squares beyond 32 bits and sums of squares beyond 64; ids with leading zeros."""
    rng = np.random.default_rng(0)
    n = 600
    price = rng.integers(1, 2_000_000_000, n)
    amount, promo = rng.normal(size=n), rng.integers(0, 2, n)
    store = rng.integers(0, 20, n)
    return pl.DataFrame(
        {
            TASK: [f"{s:03}" for s in store],
            DAY: [f"2001-01-{d:02}" for d in rng.integers(1, 31, n)],
            TARGET: (price * 1e-9 * (store % 3) + amount + rng.normal(size=n)).round(6),
            FEATURES[0]: pl.Series(price, dtype=pl.Int32),
            FEATURES[1]: amount,
            FEATURES[2]: pl.Series(promo, dtype=pl.Int16),
        }
    ).sort(TASK, maintain_order=True)


@pytest.fixture(scope="module")
def dataset(sales: pl.DataFrame) -> TaskDataset:
    X = sales.select(pl.col(FEATURES).cast(pl.Float64)).to_numpy()
    return TaskDataset.from_long(X, sales[TARGET].to_numpy(), sales[TASK].to_list(), feature_names=FEATURES)


def query(dialect: Dialect, **more: object) -> str:
    given: dict[str, object] = {
        "table": "Shop.Daily sales",
        "task": TASK,
        "target": TARGET,
        "features": FEATURES,
    }
    return statistics_sql(dialect=dialect, **(given | more))  # type: ignore[arg-type]


class DuckDB:
    dialect = Dialect.DUCKDB

    def __init__(self, sales: pl.DataFrame, folder: Path) -> None:
        self.connection, self.folder = duckdb.connect(), folder
        sales.write_parquet(folder / "sales.parquet")
        self.connection.execute('CREATE SCHEMA "Shop"')
        self.connection.execute(
            f'CREATE TABLE "Shop"."Daily sales" AS FROM read_parquet(\'{folder / "sales.parquet"}\')'
        )

    def execute(self, statement: str) -> None:
        self.connection.execute(statement)

    def result(self, statement: str) -> Path:
        file = self.folder / "statistics.parquet"
        self.connection.execute(f"COPY ({statement}) TO '{file}' (FORMAT parquet)")
        return file


class PostgreSQL:
    dialect = Dialect.POSTGRES

    def __init__(self, sales: pl.DataFrame, folder: Path, url: str) -> None:
        parts = make_url(url)
        self.folder = folder
        self.connection = psycopg.connect(
            host=parts.query.get("host") or parts.host, port=parts.port, user=parts.username,
            password=parts.password, dbname=parts.database,
        )  # fmt: skip
        self.execute('CREATE SCHEMA "Shop"')
        types = dict.fromkeys(sales.columns, "double precision")
        types |= {TASK: "text", DAY: "date", FEATURES[0]: "integer", FEATURES[2]: "smallint"}
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in types.items()
        )
        with self.connection.cursor() as cursor:
            cursor.execute(sql.SQL('CREATE TABLE "Shop"."Daily sales" ({})').format(columns))
            with cursor.copy('COPY "Shop"."Daily sales" FROM STDIN (FORMAT csv, HEADER)') as copy:
                copy.write(sales.write_csv())

    def execute(self, statement: str) -> None:
        self.connection.execute(statement.encode())

    def result(self, statement: str) -> Path:
        file = self.folder / "statistics.csv"
        copying = f"COPY ({statement}) TO STDOUT (FORMAT csv, HEADER)".encode()
        with self.connection.cursor() as cursor, cursor.copy(copying) as copy:
            file.write_bytes(b"".join(map(bytes, copy)))
        return file


Warehouse = DuckDB | PostgreSQL


@pytest.fixture(params=["duckdb", "postgresql"])
def warehouse(request: pytest.FixtureRequest, sales: pl.DataFrame, tmp_path: Path) -> Iterator[Warehouse]:
    if request.param == "duckdb":
        yield DuckDB(sales, tmp_path)
        return
    server = PostgreSQL(sales, tmp_path, request.getfixturevalue("postgres_url"))
    yield server
    server.connection.close()  # nothing was committed: all of it is gone


def assert_close(one: SufficientStatistics, other: SufficientStatistics) -> None:
    assert one.task_ids == other.task_ids
    assert one.feature_names == other.feature_names
    np.testing.assert_array_equal(one.n_samples, other.n_samples)
    for name in ("gram", "xty", "yty", "weight", "x_sum", "y_sum"):
        a, b = getattr(one, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=RELATIVE, atol=RELATIVE * np.abs(b).max() * 1e-9, err_msg=name)


def test_statistics_by_sql_equal_those_by_python(warehouse: Warehouse, dataset: TaskDataset) -> None:
    result = read_statistics(warehouse.result(query(warehouse.dialect)))
    assert_close(result, SufficientStatistics.from_dataset(dataset))


def test_they_train_the_same_model(warehouse: Warehouse, dataset: TaskDataset) -> None:
    by_sql = read_statistics(warehouse.result(query(warehouse.dialect)))
    one, other = (
        fit(data, fusion_strength=3.0, n_neighbors=4, tolerance=1e-8)
        for data in (by_sql, SufficientStatistics.from_dataset(dataset))
    )
    assert one.report.gap <= 1e-8
    np.testing.assert_array_equal(one.graph.edges, other.graph.edges)
    assert one.report.objective == pytest.approx(other.report.objective, rel=RELATIVE)
    assert one.clusters == other.clusters
    np.testing.assert_allclose(one.model.weights, other.model.weights, rtol=1e-6)


def test_folds_by_time_equal_those_by_python(
    warehouse: Warehouse, sales: pl.DataFrame, dataset: TaskDataset
) -> None:
    parts = read_statistics_folds(warehouse.result(query(warehouse.dialect, time=DAY, cuts=CUTS)))
    fold = (sales[DAY] >= CUTS[0]).cast(pl.Int64) + (sales[DAY] >= CUTS[1]).cast(pl.Int64)
    expected = SufficientStatistics.by_fold(dataset, fold.to_numpy(), 3)
    for part, other in zip(parts, expected, strict=True):
        assert_close(part, other)


def test_folds_by_number(warehouse: Warehouse) -> None:
    parts = read_statistics_folds(
        warehouse.result(query(warehouse.dialect, time=FEATURES[2], cuts=["1"], features=FEATURES[:2]))
    )
    assert len(parts) == 2
    assert sum(int(part.n_samples.sum()) for part in parts) == 600


def test_a_condition_chooses_the_rows(warehouse: Warehouse) -> None:
    where = f"\"{DAY}\" < CAST('2001-01-10' AS DATE) OR 1 = 0"
    if warehouse.dialect is Dialect.DUCKDB:
        where = f"\"{DAY}\" < '2001-01-10' OR 1 = 0"
    some = read_statistics(warehouse.result(query(warehouse.dialect, where=where)))
    folds = read_statistics_folds(warehouse.result(query(warehouse.dialect, time=DAY, cuts=["2001-01-10"])))
    assert some.n_samples.sum() == folds[0].n_samples.sum()


@pytest.mark.parametrize("column", [TASK, TARGET, FEATURES[1], DAY])
def test_rows_with_null_are_counted_and_refused(warehouse: Warehouse, column: str) -> None:
    quoted = column.replace('"', '""')
    warehouse.execute(f'UPDATE "Shop"."Daily sales" SET "{quoted}" = NULL WHERE "{DAY}" = \'2001-01-05\'')
    file = warehouse.result(query(warehouse.dialect, time=DAY, cuts=CUTS))
    frame = pl.read_csv(file) if file.suffix == ".csv" else pl.read_parquet(file)
    changed = int(frame["n_null"].sum())
    assert changed > 0
    assert int(frame["n_samples"].sum()) == 600
    with pytest.raises(DataError, match=f"{changed} rows have NULL"):
        read_statistics(file)


def test_the_result_of_duckdb_is_read_without_a_file(
    sales: pl.DataFrame, dataset: TaskDataset, tmp_path: Path
) -> None:
    warehouse = DuckDB(sales, tmp_path)
    assert_close(
        read_statistics(warehouse.connection.sql(query(Dialect.DUCKDB))),
        SufficientStatistics.from_dataset(dataset),
    )


@pytest.mark.parametrize("dialect", list(Dialect))
def test_each_dialect_reads_its_query_back(dialect: Dialect, dataset: TaskDataset) -> None:
    text = query(dialect, where="1 = 1", time=DAY, cuts=CUTS)
    parsed = sqlglot.parse(text, dialect=dialect.value)
    assert len(parsed) == 1
    select = parsed[0]
    assert isinstance(select, exp.Select)
    columns = statistics_frame(SufficientStatistics.from_dataset(dataset)).columns
    assert set(select.named_selects) == {*columns, "fold"} - {"weight"}
    features = next(e for e in select.selects if e.alias == "features")
    assert json.loads(features.this.name) == FEATURES
    assert all(name.args["quoted"] for name in select.find_all(exp.Identifier))
    samples = select.find(exp.CTE)
    assert samples is not None
    assert [table.sql() for table in samples.find_all(exp.Table)] == ['"Shop"."Daily sales"']
    assert {column.name for column in samples.find_all(exp.Column)} == {TASK, TARGET, *FEATURES, DAY}
    assert text == select.sql(dialect=dialect.value, pretty=True)


SNAPSHOT = """\
WITH `samples` AS (
  SELECT
    CAST(`sku` AS STRING) AS `task_id`,
    CAST(`sold` AS FLOAT64) AS `y`,
    CAST(`price` AS FLOAT64) AS `x_1`
  FROM `lake-1`.`shop`.`sales`
  WHERE
    sold >= 0
)
SELECT
  `task_id`,
  '["price"]' AS `features`,
  COUNT(*) AS `n_samples`,
  COUNT(CASE WHEN `task_id` IS NULL OR `y` IS NULL OR `x_1` IS NULL THEN 1 END) AS `n_null`,
  SUM(`x_1` * `x_1`) AS `gram_1_1`,
  SUM(`x_1` * `y`) AS `xty_1`,
  SUM(`y` * `y`) AS `yty`,
  SUM(`x_1`) AS `x_sum_1`,
  SUM(`y`) AS `y_sum`
FROM `samples`
GROUP BY
  `task_id`
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["statistics-sql", *arguments])


def test_the_command_prints_the_query_and_nothing_else() -> None:
    done = run(
        "--table", "lake-1.shop.sales", "--task", "sku", "--target", "sold", "--features", "price",
        "--where", "sold >= 0", "--dialect", "bigquery",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert done.stdout == SNAPSHOT


def test_fit_takes_what_the_command_made(sales: pl.DataFrame, dataset: TaskDataset, tmp_path: Path) -> None:
    names = ",".join('"' + name.replace('"', '""') + '"' for name in FEATURES)
    done = run(
        "--table", "Shop.Daily sales", "--task", TASK, "--target", TARGET, "--features", names,
        "--dialect", "duckdb",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    file = DuckDB(sales, tmp_path).result(done.stdout)
    fitted = CliRunner().invoke(
        cli, ["fit", "--statistics", str(file), "--fusion-strength", "3", "--json"], catch_exceptions=False
    )
    assert fitted.exit_code == 0, fitted.output
    report = json.loads(fitted.stdout)
    direct = fit(dataset, fusion_strength=3.0)
    assert report["objective"] == pytest.approx(direct.report.objective, rel=RELATIVE)
    assert report["samples"] == 600
    assert report["features"] == FEATURES


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"features": []}, "at least one feature"),
        ({"features": [TARGET]}, "no column twice"),
        ({"time": DAY}, "both a time column and the values"),
        ({"cuts": CUTS}, "both a time column and the values"),
        ({"time": DAY, "cuts": CUTS[::-1]}, "cuts must rise"),
        ({"time": DAY, "cuts": ["3", "3"]}, "cuts must rise"),
        ({"time": DAY, "cuts": ["soon"]}, "'soon' is not"),
        ({"table": "a.b.c.d"}, "one to three parts"),
        ({"table": "a..b"}, "one to three parts"),
        ({"where": "sold > 0; DROP TABLE sales"}, "not a condition"),
        ({"where": "SELECT 1"}, "not a condition"),
        ({"where": "sold >"}, "cannot be read as SQL"),
        ({"where": "1 = 1) OR (1 = 1"}, "cannot be read as SQL"),
    ],
)
def test_what_makes_no_query_is_refused(more: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        query(Dialect.POSTGRES, **more)


def test_the_command_says_so_too() -> None:
    done = run("--table", "t", "--task", "a", "--target", "a", "--features", "b", "--dialect", "spark")
    assert done.exit_code == 2
    assert "no column twice" in done.stderr
