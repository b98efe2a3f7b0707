"""The reference interpreter behind the backend protocol."""
