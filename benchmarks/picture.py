"""Draw docs/ta_feng.svg: held-out error on Ta-Feng over the fusion strength, beside the simple forecasts."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from app.training.evaluation import evaluate
from benchmarks.ta_feng import lagged_panel, training_and_held_out
from ccmtl_core import fit

TARGET = Path("docs/ta_feng.svg")
STRENGTHS = [10.0 ** (3 + step / 4) for step in range(13)]
PANELS = {"rmse_mean_of_tasks": "RMSE, mean over 23,812 products", "rmse_over_rows": "RMSE, over all rows"}
RIVALS = {"pooled": "one model for all", "zero": "always zero"}
OFF_THE_CHART = "each product alone: {:.2f}, off the chart"
WIDTH, HEIGHT, PANEL, MARGIN, TOP, BOTTOM = 780, 350, 318, 58, 74, 288
COLOUR = "#c2410c"

Metrics = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """A linear map from values to pixels."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of ``value``."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def measure() -> list[Metrics]:
    """Return the held-out metrics at each strength, and print them."""
    console = Console()
    console.print("fusion_strength" + "".join(f"{key:>20}" for key in PANELS), highlight=False)
    training, held_out = training_and_held_out(lagged_panel())
    graph, measured = None, []
    for strength in STRENGTHS:
        result = fit(training, fusion_strength=strength, graph=graph)
        graph = result.graph
        measured.append(evaluate(result.model, training, held_out))
        errors = "".join(f"{measured[-1][key]['ccmtl']:20.4f}" for key in PANELS)
        console.print(f"{strength:15.4g}{errors}", highlight=False)
    return measured


def draw(measured: list[Metrics]) -> str:
    """Return the picture as SVG: a panel for each way to average the error."""
    panels = [
        part
        for n, key in enumerate(PANELS)
        for part in panel(PANELS[key], [metrics[key] for metrics in measured], MARGIN + n * (PANEL + MARGIN))
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="system-ui, sans-serif">',
            '<rect width="100%" height="100%" fill="#fff"/>',
            text(
                MARGIN, 22, "Held-out error of one-day forecasts, Ta-Feng grocery: lower is better", size=15
            ),
            *panels,
            text(WIDTH / 2, HEIGHT - 12, "fusion_strength: how strongly similar products share", "middle"),
            "</svg>\n",
        ]
    )


def panel(title: str, errors: list[dict[str, float]], left: float) -> list[str]:
    """Return one panel: grid, simple forecasts, and CCMTL's path over the strengths."""
    path = [error["ccmtl"] for error in errors]
    levels = {name: errors[0][name] for name in RIVALS}
    low, high = min([*path, *levels.values()]), max([*path[1:], *levels.values()])
    pad = (high - low) * 0.1
    x = Axis(math.log10(STRENGTHS[0]), math.log10(STRENGTHS[-1]), left, left + PANEL)
    y = Axis(low - 1.5 * pad, high + pad, BOTTOM, TOP)
    points = [
        (x(math.log10(s)), y(error)) for s, error in zip(STRENGTHS, path, strict=True) if error <= y.high
    ]
    return [
        text(left, TOP - 24, title, size=13),
        text(left, TOP - 9, OFF_THE_CHART.format(errors[0]["single_task"]), size=11, fill="#777"),
        *grid(x, y),
        *(
            part
            for name, level in levels.items()
            for part in rival(name, level, x, y, above=path[-4] <= level)
        ),
        *curve(points, min(path)),
    ]


def grid(x: Axis, y: Axis) -> list[str]:
    """Return the frame, and the labels of both axes."""
    step = 10.0 ** math.floor(math.log10(y.high - y.low))
    step = step / 4 if (y.high - y.low) / step < 2 else step
    ticks = [step * n for n in range(math.ceil(y.low / step), math.floor(y.high / step) + 1)]
    powers = range(math.ceil(x.low), math.floor(x.high) + 1)
    raised = '10<tspan dy="-5" font-size="9">{}</tspan>'
    return [
        *(f'<path d="M{x.start} {y(tick):.1f}H{x.end}" stroke="#e5e5e5"/>' for tick in ticks),
        *(text(x.start - 6, y(tick) + 4, f"{tick:.3g}", "end") for tick in ticks),
        *(text(x(power), y.start + 18, raised.format(power), "middle") for power in powers),
    ]


def rival(name: str, level: float, x: Axis, y: Axis, *, above: bool) -> list[str]:
    """Return the line of a simple forecast with its name above or below it."""
    line = f'<path d="M{x.start} {y(level):.1f}H{x.end}" stroke="#777" stroke-dasharray="5 4"/>'
    return [line, text(x.end, y(level) + (-5 if above else 14), f"{RIVALS[name]} {level:.4f}", "end")]


def curve(points: list[tuple[float, float]], lowest: float) -> list[str]:
    """Return the path of CCMTL with its best point."""
    x, y = max(points, key=lambda point: point[1])  # pixels count downwards
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [
        f'<polyline points="{line}" fill="none" stroke="{COLOUR}" stroke-width="2.5"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{COLOUR}"/>',
        text(x, y + 18, f"CCMTL {lowest:.4f}", "middle", fill=COLOUR),
    ]


def text(x: float, y: float, words: str, anchor: str = "start", size: int = 12, fill: str = "#333") -> str:
    """Return words at a place."""
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} font-size="{size}" fill="{fill}">{words}</text>'


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m benchmarks.picture", description=__doc__).parse_args()
    TARGET.write_text(draw(measure()))
