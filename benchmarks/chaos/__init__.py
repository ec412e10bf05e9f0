"""Kill, suspend and cut off parts of the service under load, and check what is left of what it accepted."""
