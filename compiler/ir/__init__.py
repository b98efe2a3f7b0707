"""The program representation: values, programs, the editor that changes them, printers and the verifier."""
