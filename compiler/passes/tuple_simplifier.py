"""Takes apart tuples that are only put together to be taken apart, and the other way round."""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Editor
from compiler.ir.program import Instruction
from compiler.ir.types import TupleType
from compiler.passes.base import Option, PassContext
from compiler.passes.rules.pattern import Build, Site, pattern
from compiler.passes.worklist import apply_patterns, index_by_opcode


@pattern("element-of-tuple", "get_tuple_element(tuple(…, x, …)) = x", "get_tuple_element")
def _element_of_tuple(site: Site, i: Instruction) -> Build | None:
    made = site.operand(i)
    return (lambda b: made.operands[i.attributes["index"]]) if made.opcode == "tuple" else None


@pattern("tuple-of-elements", "a tuple of all elements of x in order = x", "tuple")
def _tuple_of_elements(site: Site, i: Instruction) -> Build | None:
    parts = [site.instructions[name] for name in i.operands]
    if not parts or any(p.opcode != "get_tuple_element" or p.operands != parts[0].operands for p in parts):
        return None
    whole = site.operand(parts[0])
    if not isinstance(whole.type, TupleType) or len(whole.type.elements) != len(parts):
        return None
    if [p.attributes["index"] for p in parts] != list(range(len(parts))):
        return None
    return lambda b: whole.name


PATTERNS = (_element_of_tuple, _tuple_of_elements)


class TupleSimplifier:
    """Removes detours through tuples."""

    name = "tuple-simplifier"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Simplifies every computation that the entry reaches."""
        apply_patterns(editor, context, index_by_opcode(PATTERNS), list(reachable(editor)))
