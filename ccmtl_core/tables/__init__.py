"""Tables in files and databases, read into datasets and statistics."""
