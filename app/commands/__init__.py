"""The `ccmtl` command."""
