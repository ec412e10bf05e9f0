"""Processes of the service: how they start, log, watch each other and end."""
