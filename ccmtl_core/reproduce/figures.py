"""Draw an experiment: error bars by share of rows for training, or time against the number of tasks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ccmtl_core.reproduce.report import Report, mean_and_error


def draw(report: Report, file: Path) -> None:
    """Write the figure of a report as PNG."""
    figure = Figure(figsize=(8.0, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.set_title(report.experiment.title)
    if report.experiment.measure == "seconds":
        _times(report, axes)
    elif report.experiment.measure == "objective":
        _ratios(report, axes)
    else:
        _errors(report, axes)
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside right upper", fontsize="small")
    figure.savefig(file, dpi=150)


def _errors(report: Report, axes: Axes) -> None:
    places = np.arange(len(report.settings), dtype=np.float64)
    width = 0.8 / max(len(report.methods), 1)
    for number, method in enumerate(report.methods):
        found = [mean_and_error(report.values(s, method)) for s in report.settings]
        means = [np.nan if mean is None else mean for mean, _ in found]
        errors = [error or 0.0 for _, error in found]
        x = places + (number + 0.5) * width - 0.4
        axes.errorbar(x, means, errors, fmt="o", capsize=3, label=method)
    axes.set_xticks(places, report.settings)
    if report.experiment.protocols:
        axes.tick_params("x", labelrotation=90, labelsize="small")
    else:
        axes.set_xlabel("rows for training")
    axes.set_ylabel("RMSE on held-out rows, standard error")


def _times(report: Report, axes: Axes) -> None:
    for method in report.methods:
        means = [mean_and_error(report.values(s, method))[0] for s in report.settings]
        tasks = [float(s.replace(",", "")) for s in report.settings]
        slope = report.slope(method)
        label = method if slope is None else f"{method} ({slope:.2f})"
        axes.plot(tasks, [np.nan if mean is None else mean for mean in means], marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("tasks")
    axes.set_ylabel("processor seconds of a fit (slope)")


def _ratios(report: Report, axes: Axes) -> None:
    for method in report.methods:
        seconds = [np.mean([c.seconds for c in report.of(s, method)] or [np.nan]) for s in report.settings]
        axes.plot(report.settings, seconds, marker="o", label=method)
    axes.set_yscale("log")
    axes.tick_params("x", labelrotation=45)
    axes.set_ylabel("processor seconds of a fit")
