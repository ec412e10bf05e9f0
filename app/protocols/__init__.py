"""Protocols of clients that exist already: the Open Inference Protocol, and MLflow's invocations."""
