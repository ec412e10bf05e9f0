"""Fits at one strength, along a path of strengths, and the choice of the strength."""
