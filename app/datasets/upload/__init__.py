"""An upload from its first byte to the new version."""
