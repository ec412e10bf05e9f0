"""A fitted forecaster: what it knows, how it forecasts, and its file."""
