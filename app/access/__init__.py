"""API keys: who may do what, in which workspace."""
