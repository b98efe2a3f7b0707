"""Transformations of programs, one a file."""
