"""The explorer without a screen: recordings of compiles, and everything that can be asked of them."""
