"""Targets: what turns kernels into something that runs."""
