"""What several tests use: a PostgreSQL server, a running service."""
