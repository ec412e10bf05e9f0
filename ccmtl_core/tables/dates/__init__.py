"""Dates as people and programs write them: further notations, and which of them a column has."""
