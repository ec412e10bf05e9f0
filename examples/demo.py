"""From the Ta-Feng grocery's transactions to served forecasts of 23,812 products: what `make demo` runs.

Everything goes over HTTP through a real service: upload, background training, metrics, forecasts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import polars as pl
import typer
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column, Table

from app.processes.lifeline import die_with_parent
from ccmtl_core.kernels.compiled import cache_folder
from examples.local_service import LocalService, ServiceFailed
from examples.ta_feng import COLUMNS, NotToBeHad, Transactions, fetch, generate

FOLDER = Path(".demo")
MODEL = "ta-feng"
HORIZON = 3
N_SHOWN = 5
EXIT_FAILED, EXIT_GENERATED = 1, 3
DATASET = {
    "name": MODEL,
    "kind": "series",
    "columns": COLUMNS,
    "ds_format": "%m/%d/%Y",
    "frequency": "D",
    "duplicates": "sum",
    "fill": {"method": "zero", "start": "dataset"},
}
JOB = {
    "dataset": MODEL,
    "model": MODEL,
    "fusion_strength": "auto",
    "n_folds": 2,
    "lags": 5,
    "holdout": 0.5,
    "refit": True,
}
RIVALS = {
    "ccmtl": "ccmtl",
    "pooled": "pooled",
    "single-task": "single_task",
    "shrunk": "shrunk",
    "all-zero": "zero",
}
"""Plain ones alone: this model has no choices that they could share."""
console = Console()


class Stopwatch:
    """Seconds of each phase, in order."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the block and announce it."""
        console.print(f"[bold]{name}[/bold]")
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


def main(
    once: Annotated[bool, typer.Option("--once", help="Stop and clean up after the last table.")] = False,
    data: Annotated[Path | None, typer.Option(help="The Ta-Feng file, CSV or zip.", envvar="DATA")] = None,
) -> None:
    """Run the demo and end with code 0, 1 (something failed) or 3 (generated data under --once)."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    FOLDER.mkdir(exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="service-", dir=FOLDER))
    try:
        generated = run(scratch, once, data)
    except ServiceFailed as error:
        console.print("The demo failed.", style="red")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(EXIT_FAILED) from None
    except KeyboardInterrupt:
        console.print("\nStopped.")
        generated = False
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        if not any(FOLDER.iterdir()):
            FOLDER.rmdir()
    if generated and once:
        raise typer.Exit(EXIT_GENERATED)


def run(scratch: Path, once: bool, data: Path | None) -> bool:
    """Go the whole path; return whether the data was generated."""
    watch = Stopwatch()
    with watch.phase("Getting the transactions"):
        transactions = obtain(data, scratch)
    with ExitStack() as stack:
        stack.enter_context(compiling_ahead())
        with watch.phase("Starting the service on SQLite"):
            service = stack.enter_context(LocalService(scratch))
        with watch.phase("Uploading over HTTP"):
            upload(service, transactions)
        with watch.phase("Training in a background job"):
            train(service)
        with watch.phase("Choosing five products and fetching their forecasts"):
            products = best_selling(transactions)
            show_forecasts(service, products)
        show_errors(service)
        show_seconds(watch)
        if transactions.generated:
            warn_generated()
        if not once:
            stay_up(service, products[0])
    return transactions.generated


@contextmanager
def compiling_ahead() -> Iterator[None]:
    """Where nothing is compiled yet, compile beside the upload what the training will need."""
    if any(cache_folder().glob("*.nbc")):
        yield
        return
    parent = os.getpid()
    command = [sys.executable, str(Path(__file__).parents[1] / "scripts" / "warm_cache.py"), "ahead"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: die_with_parent(parent, by=signal.SIGTERM),
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def obtain(data: Path | None, scratch: Path) -> Transactions:
    """Return the named file, else the real one, else a generated one with a warning."""
    if data is not None:
        if not data.is_file():
            raise ServiceFailed(f"DATA={data}: there is no such file.")
        return Transactions(data)
    try:
        return fetch(FOLDER)
    except NotToBeHad as error:
        console.print("The Ta-Feng file could not be had:", style="red")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        console.print("If you have it, name it:  make demo DATA=/path/to/ta_feng.csv.zip")
        warn_generated()
        return generate(scratch / "generated.csv")


def warn_generated() -> None:
    """Say loudly that nothing here was measured on real sales."""
    console.print(
        Panel("GENERATED DATA: these products do not exist, and the numbers say nothing.", style="bold red")
    )


def upload(service: LocalService, transactions: Transactions) -> None:
    """Create the dataset and stream the file into it."""
    service.post("/v1/datasets", DATASET)
    with Progress(
        SpinnerColumn(), BarColumn(), DownloadColumn(), console=console, transient=True
    ) as progress:
        task = progress.add_task("", total=transactions.size)

        def blocks() -> Iterator[bytes]:
            for block in transactions.blocks():
                yield block
                progress.advance(task, len(block))

        path = f"/v1/datasets/{MODEL}/versions?mode=full"
        report = service.upload(path, blocks(), transactions.size)["report"]
    console.print(
        f"  {report['rows']:,} transactions of {report['series']:,} products, "
        f"{report['first'][:10]} to {report['last'][:10]}; "
        f"{report['filled_periods']:,} absent days filled with zero",
        soft_wrap=True,
    )


def train(service: LocalService) -> None:
    """Queue the job, show each phase as it ends, and fail with the job's own words if it does."""
    job = service.post("/v1/training-jobs", JOB)
    shown: set[str] = set()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("queued", total=None)
        while job["state"] in ("queued", "running"):
            time.sleep(0.1)
            job = service.get(f"/v1/training-jobs/{job['id']}")
            progress.update(task, description=describe(job))
            for name, seconds in ended_phases(job):
                if name not in shown:
                    console.print(f"  {name:<20}{seconds:7.2f} s", highlight=False)
                    shown.add(name)
    if job["state"] != "succeeded":
        raise ServiceFailed(f"training {job['state']}: {job['error']}")


def ended_phases(job: dict[str, Any]) -> list[tuple[str, float]]:
    """The phases that are over, with their seconds; compiling comes back within others until the end."""
    phases = list((job["progress"] or {"phases": {}})["phases"].items())
    if job["state"] == "succeeded":
        return phases
    return [phase for phase in phases if phase[0] != "compiling"][:-1]


def describe(job: dict[str, Any]) -> str:
    """One line about a job under way: its phase, the solver's round and how near the optimum is."""
    progress = job["progress"]
    if progress is None:
        return str(job["state"])
    words = [progress["phase"]]
    if progress["round"]:
        words.append(f"round {progress['round']}")
    if selection := progress["selection"]:
        words.append(f"fit {selection['fits_done']} of {selection['fits']}")
        if selection["errors"]:
            words.append(f"least error so far {min(selection['errors']):.4f}")
    if progress["gap"] is not None:
        words.append(f"certified gap {progress['gap']:.1e}")
    return "  ".join(words)


def best_selling(transactions: Transactions) -> list[str]:
    """Ids of the products with the largest sums, read as text."""
    columns = pl.read_csv(
        b"".join(transactions.blocks()),
        columns=[COLUMNS["unique_id"], COLUMNS["y"]],
        schema_overrides={COLUMNS["unique_id"]: pl.String, COLUMNS["y"]: pl.Float64},
    )
    totals = columns.group_by(COLUMNS["unique_id"]).agg(pl.col(COLUMNS["y"]).sum())
    return totals.sort(COLUMNS["y"], descending=True)[COLUMNS["unique_id"]].head(N_SHOWN).to_list()


def show_forecasts(service: LocalService, products: list[str]) -> None:
    """Fetch the next days of some products and print them."""
    answer = service.post(f"/v1/models/{MODEL}/forecast", {"unique_id": products, "h": HORIZON})
    by_product: dict[str, list[dict[str, Any]]] = {product: [] for product in products}
    for row in answer["forecasts"]:
        by_product[row["unique_id"]].append(row)
    days = [row["ds"] for row in by_product[products[0]]]
    table = Table("unique_id", *(Column(day, justify="right") for day in days))
    for product, rows in by_product.items():
        table.add_row(product, *(f"{row['yhat']:.2f}" for row in rows))
    console.print(f"Units that the {len(products)} best-selling products are forecast to sell:")
    console.print(table)


def show_errors(service: LocalService) -> None:
    """Print the held-out error of the model beside the simple forecasts."""
    newest = service.get(f"/v1/models/{MODEL}")["newest"]
    metrics, strength = newest["metrics"], newest["report"]["fusion_strength"]
    chosen = newest["report"]["selection"]
    of_folds = {name: chosen["rivals"][field] for name, field in RIVALS.items() if field in chosen["rivals"]}
    rivals = ", ".join(f"{name} {error:.4f}" for name, error in of_folds.items())
    console.print(
        f"Chosen among {len(chosen['errors'])} strengths on {chosen['n_folds']} blocks of the first half, "
        f"each forecast from those before it: fusion_strength {strength:.4g}, error "
        f"{chosen['errors'][chosen['chosen']]:.4f}; {rivals}.",
        soft_wrap=True,
        highlight=False,
    )
    table = Table("RMSE", *(Column(name, justify="right") for name in RIVALS))
    for title, key in (
        ("mean over products", "rmse_mean_of_tasks"),
        ("over all rows", "rmse_over_rows"),
    ):
        table.add_row(title, *(f"{metrics[key][field]:.4f}" for field in RIVALS.values()))
    console.print(
        f"Error of one-day forecasts on the last half in time, held out, of {metrics['n_tasks_scored']:,} "
        f"products; fusion_strength {strength:.4g}:",
        soft_wrap=True,
    )
    console.print(table)


def show_seconds(watch: Stopwatch) -> None:
    """Print how long each phase took, and the whole."""
    table = Table("phase", Column("seconds", justify="right"))
    for name, seconds in watch.seconds.items():
        table.add_row(name, f"{seconds:.1f}")
    table.add_section()
    table.add_row("Together", f"{sum(watch.seconds.values()):.1f}")
    console.print(table)


def stay_up(service: LocalService, product: str) -> None:
    """Print what to try and wait for Ctrl-C."""
    forecast = f"{service.url}/v1/models/{MODEL}/forecast?unique_id={quote(product, safe='')}&h=7"
    console.print("The service stays up until Ctrl-C. Try:")
    for line in (f"curl '{forecast}'", f"{service.url}/v1/models/{MODEL}", f"{service.url}/docs"):
        console.print(f"  {line}", highlight=False, soft_wrap=True)
    service.wait()


if __name__ == "__main__":
    typer.run(main)
