"""Facts about programs that passes and reports share."""
