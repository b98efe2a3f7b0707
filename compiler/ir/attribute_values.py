"""Numbers that remember the type they were written with.

Most attributes have a type that their operation fixes. Those of frameworks (`mhlo.backend_config = {uplo = 76 : ui8}`) do not,
and whoever reads the printed program may depend on it. Everybody else sees plain numbers.
"""

from __future__ import annotations

import numpy as np


class TypedInt(int):
    """An integer written as `76 : ui8`. Equal to the plain integer."""

    type_name: str

    def __new__(cls, value: int, type_name: str) -> TypedInt:
        """Takes the number and the name of its type."""
        made = super().__new__(cls, value)
        made.type_name = type_name
        return made


class TypedFloat(float):
    """A number written as `1.5 : f32`. Equal to the plain number that is written with the fewest digits.

    `0.001 : f32` is 0.001, however many digits of the nearest f32 a file gives: two files that mean the same f32 are equal.
    """

    type_name: str

    def __new__(cls, value: float, type_name: str) -> TypedFloat:
        """Takes the number and the name of its type."""
        if type_name == "f32":
            with np.errstate(over="ignore"):
                value = float(str(np.float32(value)))
        made = super().__new__(cls, value)
        made.type_name = type_name
        return made
