"""The database with its tables, and the storage of files."""
