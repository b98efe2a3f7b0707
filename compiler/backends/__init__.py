"""Backends behind one hook protocol."""
