"""The terminal program: an app, screens, and panels that draw one trace."""
