"""Numbers that remember the type they were written with.

Most attributes have a type that their operation fixes. Those of frameworks (`mhlo.backend_config = {uplo = 76 : ui8}`) do not,
and whoever reads the printed program may depend on it. Everybody else sees plain numbers.
"""

from __future__ import annotations


class TypedInt(int):
    """An integer written as `76 : ui8`. Equal to the plain integer."""

    type_name: str

    def __new__(cls, value: int, type_name: str) -> TypedInt:
        """Takes the number and the name of its type."""
        made = super().__new__(cls, value)
        made.type_name = type_name
        return made


class TypedFloat(float):
    """A number written as `1.5 : f32`. Equal to the plain number."""

    type_name: str

    def __new__(cls, value: float, type_name: str) -> TypedFloat:
        """Takes the number and the name of its type."""
        made = super().__new__(cls, value)
        made.type_name = type_name
        return made
