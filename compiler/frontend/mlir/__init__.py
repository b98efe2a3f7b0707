"""MLIR text to modules: `parse(text, filename)`.

Two steps: `reader` turns the text into a tree of MLIR operations, pretty or generic form alike; `importer` turns the tree
into the compiler's own programs (regions to computations, captures made explicit, attributes normalised).
"""

from __future__ import annotations

from compiler.frontend.parsed import Parsed
from compiler.ir.program import Module


def parse(text: str, filename: str = "<text>", line_offset: int = 0) -> Parsed:
    """Parses one module. `line_offset` is added to reported lines, for programs split out of a larger file.

    Raises:
        SourceError: when the text is not a module that can be understood.
    """
    from compiler.frontend.mlir.importer import import_tree
    from compiler.frontend.mlir.reader import Reader

    reader = Reader(text, filename, line_offset)
    try:
        return import_tree(reader.read(), reader)
    except RecursionError:
        reader.fail("nested too deeply to be read")
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
        reader.fail(f"this cannot be read: {error}")


def parse_module(text: str, filename: str = "<text>") -> Module:
    """The module alone. Raises SourceError, see `parse`."""
    return parse(text, filename).module


def split_programs(text: str) -> list[tuple[int, str]]:
    """The programs of a file that separates them by `// -----` lines, each with the number of lines before it."""
    programs: list[tuple[int, str]] = []
    lines: list[str] = []
    start = 0
    for number, line in enumerate(text.splitlines(keepends=True)):
        if line.lstrip().startswith("// -----"):
            programs.append((start, "".join(lines)))
            lines, start = [], number + 1
        else:
            lines.append(line)
    programs.append((start, "".join(lines)))
    return [(offset, part) for offset, part in programs if part.strip()]
