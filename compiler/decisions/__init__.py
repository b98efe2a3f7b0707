"""Choices laid open: kinds of decisions, the log, overrides."""
