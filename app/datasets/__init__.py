"""Datasets: named, versioned, immutable uploads of sales or of feature rows."""
