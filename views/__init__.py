"""Everything that draws: the command line, the terminal program, exports."""
