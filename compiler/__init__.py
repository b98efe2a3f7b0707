"""The compiler: StableHLO in, optimised HLO, machine code out, every step recorded."""
