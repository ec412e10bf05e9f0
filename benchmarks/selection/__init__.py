"""Choosing strength and model by validation, measured on real data."""
