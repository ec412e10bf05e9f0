"""Rows of a table examined at once, or the rows of some of its series after those of others."""
