"""The forecasting service: HTTP, database and background training around ``ccmtl_core``."""

import gc

gc.set_threshold(50_000, 20, 20)
"""Seldom look for objects that refer to each other: most that are made while modules are imported stay, and
looking at them again and again takes a fifth of each start."""
