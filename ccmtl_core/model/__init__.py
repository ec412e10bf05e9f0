"""The fitted model: weights per task, predictions, and the file that keeps them."""
