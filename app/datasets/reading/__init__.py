"""What the service adds to the library's reader of tables."""
