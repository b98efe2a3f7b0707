"""Files to modules."""
