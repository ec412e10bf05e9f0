"""Model versions: published weights, metrics and configuration."""
