"""The floating-point formats of 16 bits and fewer, as their specifications define them.

Sources: IEEE 754 (f16), the OCP formats (f8E4M3FN, f8E5M2, f8E8M0FNU, f6, f4), the StableHLO RFCs for the
``FNUZ`` ones. Where a specification leaves a result open, `compiler.backends.cpu.vector_math.conversions` does
what ml_dtypes does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Special = Literal["ieee", "fn", "fnuz", "finite"]


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A format of sign, exponent and mantissa, the exponent biased, subnormals included.

    `special` says what the ends of the range mean: ``ieee`` has infinities and NaNs, ``fn`` only a NaN of all
    ones, ``fnuz`` one NaN in the place of -0, ``finite`` neither.
    """

    bits: int
    mantissa: int
    bias: int
    special: Special

    @property
    def held(self) -> str:
        """The integer kind its bits are held in."""
        return "i16" if self.bits == 16 else "i8"

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        """The code above all finite ones: of infinity where there is one."""
        return (
            self.sign - (1 << self.mantissa) if self.special == "ieee" else self.sign - (self.special == "fn")
        )

    @property
    def overflow(self) -> int:
        """The code of what rounds to more than the largest finite value."""
        if self.special == "fnuz":
            return self.sign
        return self.infinity - 1 if self.special == "finite" else self.infinity

    @property
    def nan(self) -> int:
        """The code of NaN without its sign; a format that has none takes -0, and 0 for a negative NaN."""
        if self.special == "ieee":
            return self.infinity | (1 << (self.mantissa - 1))
        return self.infinity if self.special == "fn" else self.sign


SMALL_FLOATS = {
    "bf16": SmallFloat(16, 7, 127, "ieee"),
    "f16": SmallFloat(16, 10, 15, "ieee"),
    "f8E5M2": SmallFloat(8, 2, 15, "ieee"),
    "f8E4M3": SmallFloat(8, 3, 7, "ieee"),
    "f8E3M4": SmallFloat(8, 4, 3, "ieee"),
    "f8E4M3FN": SmallFloat(8, 3, 7, "fn"),
    "f8E4M3FNUZ": SmallFloat(8, 3, 8, "fnuz"),
    "f8E4M3B11FNUZ": SmallFloat(8, 3, 11, "fnuz"),
    "f8E5M2FNUZ": SmallFloat(8, 2, 16, "fnuz"),
    "f6E2M3FN": SmallFloat(6, 3, 1, "finite"),
    "f6E3M2FN": SmallFloat(6, 2, 3, "finite"),
    "f4E2M1FN": SmallFloat(4, 1, 1, "finite"),
}
"""By StableHLO name; f8E8M0FNU, which has no sign, no zero and no mantissa, is apart."""

POWERS_OF_TWO = "f8E8M0FNU"
