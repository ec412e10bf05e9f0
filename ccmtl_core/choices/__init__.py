"""What a user may choose about a model: start, metric, intercept, scaling."""
