"""Forecasts of four real sets beside those of rivals: errors, totals, bias and seconds."""
