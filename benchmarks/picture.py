"""Draws docs/ta_feng.svg: held-out error on Ta-Feng over the fusion strength, beside the simple forecasts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from app.training.evaluation import evaluate
from benchmarks.ta_feng import lagged_panel, training_and_held_out
from ccmtl_core import fit

TARGET = Path("docs/ta_feng.svg")
STRENGTHS = [10.0 ** (e / 2) for e in range(-2, 13)]
WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 50, 60
COLOUR = "#c2410c"
RIVALS = {"single_task": "each product alone", "pooled": "one model for all", "zero": "always zero"}


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


def measure() -> tuple[list[tuple[float, float]], dict[str, float]]:
    """Return (λ, RMSE) along the path and the RMSE of each rival."""
    console = Console()
    training, held_out = training_and_held_out(lagged_panel())
    graph = None
    path = []
    rmse: dict[str, float] = {}
    for strength in STRENGTHS:
        result = fit(training, fusion_strength=strength, graph=graph)
        graph = result.graph
        rmse = evaluate(result.model.weights, training, held_out)["rmse_mean_of_tasks"]
        path.append((strength, rmse["ccmtl"]))
        console.print(f"fusion_strength {strength:12.4g}   RMSE {rmse['ccmtl']:.4f}", highlight=False)
    rivals = {name: rmse[name] for name in RIVALS}
    for name, value in rivals.items():
        console.print(f"{RIVALS[name]:<28}   RMSE {value:.4f}", highlight=False)
    return path, rivals


def draw(path: list[tuple[float, float]], rivals: dict[str, float]) -> str:
    """Return the picture as SVG."""
    values = [rmse for _, rmse in path] + list(rivals.values())
    x = Axis(math.log10(path[0][0]), math.log10(path[-1][0]), LEFT, WIDTH - RIGHT)
    y = Axis(
        math.floor((min(values) - 0.06) * 10) / 10, math.ceil(max(values) * 10) / 10, HEIGHT - BOTTOM, TOP
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="system-ui, sans-serif" font-size="13" fill="#333">',
            '<rect width="100%" height="100%" fill="#fff"/>',
            text(LEFT, 26, "Held-out error on 23,812 real products: mean RMSE, lower is better", size=16),
            *frame(x, y),
            *(part for name, value in rivals.items() for part in rival(RIVALS[name], y(value))),
            *curve([(x(math.log10(strength)), y(rmse)) for strength, rmse in path], min(r for _, r in path)),
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, anchor: str = "start", size: int = 13, fill: str = "#333") -> str:
    """Return words at a place."""
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {where} font-size="{size}" fill="{fill}">{words}</text>'


def frame(x: Axis, y: Axis) -> list[str]:
    """Return grid lines and the labels of both axes."""
    ticks = [y.low + 0.1 * step for step in range(round((y.high - y.low) / 0.1) + 1)]
    powers = range(math.ceil(x.low), math.floor(x.high) + 1)
    raised = '10<tspan dy="-5" font-size="10">{}</tspan>'
    return [
        *(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#e5e5e5"/>' for tick in ticks),
        *(text(LEFT - 8, y(tick) + 4, f"{tick:.1f}", "end") for tick in ticks),
        *(text(x(power), HEIGHT - BOTTOM + 20, raised.format(power), "middle") for power in powers),
        text(
            (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 14,
            "fusion_strength: how strongly similar products share",
            "middle",
        ),
    ]


def rival(name: str, y: float) -> list[str]:
    """Return the level line of a simple forecast with its name."""
    line = f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#999" stroke-dasharray="5 4"/>'
    return [line, text(WIDTH - RIGHT + 8, y + 4, name)]


def curve(points: list[tuple[float, float]], lowest: float) -> list[str]:
    """Return the path of CCMTL with its best point."""
    x, y = max(points, key=lambda point: point[1])  # pixels count downwards
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return [
        f'<polyline points="{line}" fill="none" stroke="{COLOUR}" stroke-width="2.5"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{COLOUR}"/>',
        text(x, y + 22, f"CCMTL {lowest:.3f}", "middle", fill=COLOUR),
    ]


if __name__ == "__main__":
    TARGET.write_text(draw(*measure()))
