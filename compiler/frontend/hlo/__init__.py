"""HLO text, in XLA's own syntax, to modules: `parse_hlo(text, filename)`.

Two steps: `reader` turns the text into HLO's own instructions as written; `importer` turns these into the compiler's programs
(StableHLO's opcodes and attributes, layouts and names as they are).
"""

from __future__ import annotations

from compiler.frontend.parsed import Parsed


def parse_hlo(text: str, filename: str = "<text>") -> Parsed:
    """Parses one module.

    Raises:
        SourceError: when the text is not a module that can be understood.
    """
    from compiler.frontend.hlo.importer import import_module
    from compiler.frontend.hlo.reader import Reader

    reader = Reader(text, filename)
    try:
        return import_module(reader.read(), reader)
    except RecursionError:
        reader.fail("nested too deeply to be read")
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        reader.fail(f"this cannot be read: {error}")
