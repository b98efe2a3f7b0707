"""The algebraic simplifier's rules: laws as text where they are elementwise, functions where shapes matter."""
