"""The database, its tables, and the storage of files."""
