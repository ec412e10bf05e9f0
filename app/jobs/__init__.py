"""Background jobs: the queue in the database, the worker, and the process that runs one fit."""
