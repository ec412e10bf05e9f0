"""Predictions and forecasts, answered from memory."""
