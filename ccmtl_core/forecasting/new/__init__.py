"""Forecasts of products that a forecaster was not fitted to."""
