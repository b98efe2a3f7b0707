"""Sorts carry along only what somebody reads afterwards, and what has nothing to sort is left as it is."""

from __future__ import annotations

from compiler.analysis.call_graph import reachable
from compiler.ir.editor import Edit, Editor
from compiler.ir.program import Attributes, Computation, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType
from compiler.passes.base import Option, PassContext

TRIVIAL = Rule("sort-of-one", "sorting along a dimension of at most one element changes nothing")
NARROW = Rule("sort-fewer", "an operand that is neither compared nor read need not be sorted")


class SortSimplifier:
    """Removes trivial sorts and unread operands of others."""

    name = "sort-simplifier"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Works on every computation that the entry reaches."""
        for computation in reachable(editor):
            for i in [i for i in editor.computation(computation) if i.opcode == "sort"]:
                kind = editor.get(computation, i.operands[0]).tensor
                if kind.rank == 0 or kind.shape[i.attributes["dimension"]] <= 1:
                    with editor.rewrite(TRIVIAL, computation, i.name) as edit:
                        single = len(i.operands) == 1
                        edit.replace(i.name, i.operands[0] if single else edit.add("tuple", i.operands))
                else:
                    _narrow(editor, computation, i)


def _narrow(editor: Editor, computation: str, i: Instruction) -> None:
    readers = [editor.get(computation, name) for name in editor.users(computation, i.name)]
    if len(i.operands) == 1 or editor.working(computation).root == i.name:
        return
    if any(reader.opcode != "get_tuple_element" for reader in readers):
        return
    comparator = editor.computation(i.called[0])
    needed = {reader.attributes["index"] for reader in readers}
    needed |= {
        k // 2
        for k, name in enumerate(comparator.parameters)
        if any(name in inner.operands for inner in comparator)
    }
    kept = sorted(needed)
    if not kept or len(kept) == len(i.operands):
        return
    with editor.rewrite(NARROW, computation, i.name) as edit:
        edit.note = f"{len(kept)} of {len(i.operands)} operands"
        called = (_comparator_of(edit, comparator, kept),)
        operands = [i.operands[k] for k in kept]
        made = edit.add("sort", operands, attributes=i.attributes, called=called)
        for reader in readers:
            part = made
            if len(kept) > 1:
                place = Attributes(index=kept.index(reader.attributes["index"]))
                part = edit.add("get_tuple_element", [made], attributes=place)
            edit.replace(reader.name, part)
        edit.sweep(i.name)


def _comparator_of(edit: Edit, old: Computation, kept: list[int]) -> str:
    """The comparator without the parameters of dropped operands, which it does not read."""
    wanted = [old.parameters[2 * k + side] for k in kept for side in (0, 1)]
    names: dict[str, str] = {}
    copies: list[Instruction] = []
    for i in old:
        if i.opcode == "parameter" and i.name not in wanted:
            continue
        attributes, prefix = i.attributes, i.opcode
        if i.opcode == "parameter":
            attributes, prefix = Attributes(index=wanted.index(i.name)), f"arg{wanted.index(i.name)}"
            assert isinstance(i.type, TensorType)
        names[i.name] = edit.fresh_name(prefix, i.name)
        operands = tuple(names[operand] for operand in i.operands)
        copies.append(
            Instruction(names[i.name], i.opcode, i.type, operands, attributes, i.called, i.location)
        )
    return edit.add_computation(old.name, copies, names[old.root])
