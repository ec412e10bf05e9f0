"""Forecasts of windows that lie behind, beside simple rivals: how they are made, scored and compared."""
