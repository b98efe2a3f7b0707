"""MLIR bytecode to modules."""
