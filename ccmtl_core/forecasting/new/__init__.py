"""Forecasts of products that a forecaster was not fitted to."""

MOST_ATTRIBUTES = 8
"""Of a product; all combinations of them are tried."""
