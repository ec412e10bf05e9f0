"""The paper's experiments as one call: run, compare by tests, print, draw, and go on after a kill.

The extra "reproduce" brings scikit-learn and matplotlib.
"""

from ccmtl_core.reproduce.cells import Cell, run_cells
from ccmtl_core.reproduce.experiments import EXPERIMENTS, Experiment, table_experiment
from ccmtl_core.reproduce.figures import draw
from ccmtl_core.reproduce.report import Report

__all__ = ["EXPERIMENTS", "Cell", "Experiment", "Report", "draw", "run_cells", "table_experiment"]
