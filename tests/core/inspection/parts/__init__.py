"""Tests of what examines rows in parts."""
