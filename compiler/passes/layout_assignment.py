"""Layout assignment: the physical order of every array, and which data movement that saves.

Entry parameters and results are row-major. A reshape between row-major arrays is the same memory (`bitcast`). A transpose
can be too, if its result takes the operand's order: a decision, worth it where all readers take any strides (products,
convolutions), since they would otherwise wait for a copy.
"""

from __future__ import annotations

from compiler.decisions.log import Choice, Kind
from compiler.ir.editor import Editor
from compiler.ir.program import Attributes, Instruction
from compiler.ir.rewrite import Rule
from compiler.ir.types import Layout, TensorType
from compiler.passes.base import Option, PassContext
from compiler.passes.fusion import run_computations

LAYOUT = Kind("layout", "The physical order of an array's dimensions", "row-major")
RESHAPE_IS_BITCAST = Rule("reshape-is-bitcast", "a reshape of a row-major array is the same memory")
TRANSPOSE_IS_BITCAST = Rule("transpose-is-bitcast", "a transposed array is the same memory in another order")

STRIDED_READERS = frozenset({"dot_general"})
"""Operations that read any strides at full speed."""


class ReshapeToBitcast:
    """Turns reshapes that no fusion took in into names for the same memory."""

    name = "reshape-to-bitcast"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Runs after fusion, in every computation that runs as it stands."""
        for name in run_computations(editor):
            for instruction in list(editor.computation(name)):
                if instruction.opcode == "reshape":
                    _reshape(editor, name, editor.get(name, instruction.name))


class LayoutAssignment:
    """See the module's docstring."""

    name = "layout-assignment"
    options: tuple[Option, ...] = ()

    def run(self, editor: Editor, context: PassContext) -> None:
        """Assigns layouts in every computation that runs as it stands."""
        for name in run_computations(editor):
            for instruction in list(editor.computation(name)):
                if instruction.opcode == "transpose":
                    self._transpose(editor, context, name, instruction)

    def _transpose(self, editor: Editor, context: PassContext, name: str, instruction: Instruction) -> None:
        operand = editor.get(name, instruction.operands[0])
        same = transposed_layout(operand.tensor, instruction.attributes["permutation"])
        users = [editor.get(name, user) for user in editor.users(name, instruction.name)]
        is_root = editor.working(name).root == instruction.name
        strict = next((user.name for user in users if user.opcode not in STRIDED_READERS), "")
        if is_root:
            forbidden = "the computation returns it, and results are row-major"
        else:
            forbidden = f"{strict} reads it row by row" if strict else ""
        cost = 2.0 * instruction.tensor.bytes
        options = [Choice("as-operand", 0.0, "bytes", forbidden), Choice("row-major", cost, "bytes")]
        policy = "row-major" if forbidden else "as-operand"
        reason = forbidden or f"all {len(users)} readers take any strides, so nothing need be moved"
        chosen = context.decider.decide(
            LAYOUT, f"{name}/{instruction.name}", options, policy, reason, locations=(instruction.location,)
        )
        if chosen == "as-operand":
            with editor.rewrite(TRANSPOSE_IS_BITCAST, name, instruction.name) as edit:
                result = instruction.tensor.with_layout(same)
                made = edit.add("bitcast", [operand.name], type=result, attributes=Attributes())
                edit.replace(instruction.name, made)


def _reshape(editor: Editor, name: str, instruction: Instruction) -> None:
    operand = editor.get(name, instruction.operands[0])
    if operand.tensor.layout is not None or instruction.tensor.layout is not None:
        return
    with editor.rewrite(RESHAPE_IS_BITCAST, name, instruction.name) as edit:
        made = edit.add("bitcast", [operand.name], type=instruction.type)
        edit.replace(instruction.name, made)


def transposed_layout(operand: TensorType, permutation: tuple[int, ...]) -> Layout:
    """The layout under which `transpose(operand, permutation)` lies exactly where the operand does."""
    position = {dimension: index for index, dimension in enumerate(permutation)}
    return Layout(tuple(position[dimension] for dimension in operand.minor_to_major))
