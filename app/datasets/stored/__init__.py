"""Stored segments of rows, and the frames read from them."""
