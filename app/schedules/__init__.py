"""Schedules: what to train again and again, and when."""
