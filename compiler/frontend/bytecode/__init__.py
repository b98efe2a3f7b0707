"""MLIR bytecode to modules: `parse(data, filename)` for portable artifacts and for what `jax.export` serialises.

Three steps: `artifact` reads the sections and makes the tree of operations that the text reader makes too, `legalise` turns
VHLO, the stable form of StableHLO, into StableHLO, and the importer of MLIR text does the rest.
"""

from __future__ import annotations

from compiler.frontend.parsed import Parsed


def parse(data: bytes, filename: str) -> Parsed:
    """Reads one artifact. An artifact has no lines: instructions have no positions, and errors tell the byte.

    Raises:
        SourceError: when it is damaged, or holds what cannot be understood.
    """
    from compiler.frontend.bytecode.artifact import read_operations
    from compiler.frontend.bytecode.exported import find_artifact
    from compiler.frontend.bytecode.legalise import legalise
    from compiler.frontend.bytecode.source import ArtifactSource
    from compiler.frontend.bytecode.stream import MAGIC, ByteStream
    from compiler.frontend.mlir.importer import import_tree

    source = ArtifactSource(filename)
    start, end = (0, len(data)) if data.startswith(MAGIC) else find_artifact(data, filename)
    stream = ByteStream(data, filename, start, end, start)
    try:
        operations = read_operations(stream)
        if len(operations) != 1 or operations[0].name != "builtin.module" or not operations[0].regions:
            stream.fail("the artifact holds no module", start)
        legalise(operations, source)
        parsed = import_tree(operations[0], source)
    except RecursionError:
        stream.fail("nested too deeply to be read", start)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        stream.fail(f"this cannot be read: {error}", start)
    return Parsed(parsed.module, {}, filename)
