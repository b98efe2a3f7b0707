"""Planted miscompiles: small models, and plugins whose pass makes one wrong rewrite among harmless ones.

A fault is written as the body of `wrong(edit, i, owner)`, which is run inside a rewrite of instruction `i` when `when`
holds for it. Around it the pass exchanges operands of additions and products, which changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

MODEL = """func.func @main(%x: tensor<3x3xf32>, %y: tensor<3x3xf32>) -> tensor<3x3xf32> {{
  %p = stablehlo.add %x, %y : tensor<3x3xf32>
{body}
  %q = stablehlo.multiply %r, %y : tensor<3x3xf32>
  %s = stablehlo.add %q, %x : tensor<3x3xf32>
  func.return %s : tensor<3x3xf32>
}}
"""

PLUGIN = """
from dataclasses import replace

import numpy as np

from compiler.ir.literal import Literal
from compiler.ir.program import Attributes
from compiler.ir.rewrite import Rule
from compiler.ir.types import TensorType, element

HARMLESS = Rule("exchange", "op(a, b) = op(b, a)")
WRONG = Rule("{rule}", "{law}", "plugin.py")


def constant(edit, kind, value):
    return edit.add("constant", type=kind, attributes=Attributes(value=Literal(kind, np.full(kind.shape, value, kind.element.dtype))))


def wrong(edit, i, owner):
{wrong}


def when(i, owner, inside):
    return {when}


class Pass:
    name = "planted"
    options = ()

    def run(self, editor, context):
        for computation in editor.computations():
            done = False
            for name in editor.working(computation).names():
                owner = editor.working(computation).instructions
                i = owner.get(name)
                if i is None:
                    continue
                if not done and when(i, owner, computation):
                    done = True
                    with editor.rewrite(WRONG, computation, name) as edit:
                        wrong(edit, i, owner)
                elif i.opcode in ("add", "multiply") and len(i.operands) == 2:
                    with editor.rewrite(HARMLESS, computation, name) as edit:
                        edit.update(i.with_operands(i.operands[::-1]))


def register(registry):
    registry.add_pass(Pass(), id="planted-{rule}", {place})
"""


@dataclass(frozen=True)
class Fault:
    """A wrong rule, the model that shows it, when it is applied, and what it does."""

    rule: str
    law: str
    body: str
    when: str
    wrong: str
    place: str = 'before="algebraic-simplifier"'
    opcode: str = ""
    """Opcode of the instruction that must be named."""

    @property
    def stage(self) -> str:
        """Id of the planted stage."""
        return f"planted-{self.rule}"

    def write(self, folder: Path) -> tuple[str, str]:
        """The model and the plugin as files; their paths."""
        model, plugin = folder / "model.mlir", folder / "plugin.py"
        model.write_text(MODEL.format(body=indent(self.body.strip("\n"), "  ")))
        text = PLUGIN.format(
            rule=self.rule,
            law=self.law,
            wrong=indent(self.wrong.strip(), "    "),
            when=self.when,
            place=self.place,
        )
        plugin.write_text(text)
        return str(model), str(plugin)


T = "tensor<3x3xf32>"
CONSTANT = "%{name} = stablehlo.constant dense<{value}> : " + T


def _updated(attributes: str) -> str:
    return f"edit.update(i.with_attributes(i.attributes.having({attributes})))"


FAULTS = (
    Fault(
        "difference-of-sum",
        "x - (y + z) = (x - y) + z",
        f"%a = stablehlo.add %x, %p : {T}\n%r = stablehlo.subtract %y, %a : {T}",
        'i.opcode == "subtract" and owner[i.operands[1]].opcode == "add"',
        "a, b = owner[i.operands[1]].operands\n"
        'edit.replace(i.name, edit.add("add", (edit.add("subtract", (i.operands[0], a)), b)))',
        opcode="subtract",
    ),
    Fault(
        "subtract-is-commutative",
        "x - y = y - x",
        f"%r = stablehlo.subtract %p, %y : {T}",
        'i.opcode == "subtract"',
        "edit.update(i.with_operands(i.operands[::-1]))",
        opcode="subtract",
    ),
    Fault(
        "slice-of-concatenate",
        "slice(concatenate(x, y)) starts one row later",
        f"%c = stablehlo.concatenate %p, %y, dim = 0 : ({T}, {T}) -> tensor<6x3xf32>\n"
        f"%r = stablehlo.slice %c [1:4, 0:3] : (tensor<6x3xf32>) -> {T}",
        'i.opcode == "slice"',
        _updated("start_indices=(2, 0), limit_indices=(5, 3)"),
        opcode="slice",
    ),
    Fault(
        "pad-other-side",
        "padding is symmetric",
        f"%z = stablehlo.constant dense<2.5> : tensor<f32>\n"
        f"%v = stablehlo.slice %p [0:2, 0:3] : ({T}) -> tensor<2x3xf32>\n"
        f"%r = stablehlo.pad %v, %z, low = [1, 0], high = [0, 0], interior = [0, 0]"
        f" : (tensor<2x3xf32>, tensor<f32>) -> {T}",
        'i.opcode == "pad"',
        _updated("edge_padding_low=(0, 0), edge_padding_high=(1, 0)"),
        opcode="pad",
    ),
    Fault(
        "reduce-from-one",
        "the initial value of a sum does not matter",
        f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%v = stablehlo.reduce(%p init: %z) applies stablehlo.add across dimensions = [0]"
        f" : ({T}, tensor<f32>) -> tensor<3xf32>\n"
        f"%r = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<3xf32>) -> {T}",
        'i.opcode == "reduce"',
        "kind = owner[i.operands[1]].type\n"
        "edit.update(i.with_operands((i.operands[0], constant(edit, kind, 1.0))))",
        opcode="reduce",
    ),
    Fault(
        "select-of-not",
        "select(p, x, y) = select(p, y, x)",
        f"%c = stablehlo.compare LT, %x, %y : ({T}, {T}) -> tensor<3x3xi1>\n"
        f"%r = stablehlo.select %c, %p, %y : tensor<3x3xi1>, {T}",
        'i.opcode == "select"',
        "c, x, y = i.operands\nedit.update(i.with_operands((c, y, x)))",
        opcode="select",
    ),
    Fault(
        "convert-rounds",
        "convert(x) = convert(round(x))",
        f"%k = stablehlo.constant dense<3.7> : {T}\n%v = stablehlo.multiply %p, %k : {T}\n"
        f"%i = stablehlo.convert %v : ({T}) -> tensor<3x3xi32>\n"
        f"%r = stablehlo.convert %i : (tensor<3x3xi32>) -> {T}",
        'i.opcode == "convert" and i.type.element.name == "i32"',
        'edit.update(i.with_operands((edit.add("round_nearest_even", i.operands),)))',
        opcode="convert",
    ),
    Fault(
        "all-constants-are-equal",
        "constants of one type are equal",
        f"%k = stablehlo.constant dense<2.0> : {T}\n%l = stablehlo.constant dense<0.25> : {T}\n"
        f"%v = stablehlo.multiply %p, %k : {T}\n%w = stablehlo.tanh %v : {T}\n%r = stablehlo.multiply %w, %l : {T}",
        'i.opcode == "constant" and any(o.opcode == "constant" and o.type == i.type and o.name != i.name '
        "and list(owner).index(o.name) < list(owner).index(i.name) for o in owner.values())",
        'other = next(o for o in owner.values() if o.opcode == "constant" and o.type == i.type)\n'
        "edit.replace(i.name, other.name)",
        'before="cse"',
        opcode="constant",
    ),
    Fault(
        "one-turn-less",
        "the last turn changes nothing",
        f"%n = stablehlo.constant dense<0> : tensor<i32>\n"
        f"%l:2 = stablehlo.while(%i = %n, %v = %p) : tensor<i32>, {T}\n"
        "cond {\n  %five = stablehlo.constant dense<5> : tensor<i32>\n"
        "  %c = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "  stablehlo.return %c : tensor<i1>\n} do {\n"
        "  %one = stablehlo.constant dense<1> : tensor<i32>\n  %j = stablehlo.add %i, %one : tensor<i32>\n"
        f"  %w = stablehlo.multiply %v, %x : {T}\n  %u = stablehlo.add %w, %y : {T}\n"
        f"  stablehlo.return %j, %u : tensor<i32>, {T}\n}}\n%r = stablehlo.negate %l#1 : {T}",
        'i.opcode == "constant" and i.type.shape == () and not i.type.element.is_float '
        "and i.literal.array.item() == 5",
        "edit.update(i.with_attributes(Attributes(value=Literal(i.type, np.asarray(4, i.type.element.dtype)))))",
        'after="call-inliner"',
        opcode="constant",
    ),
    Fault(
        "transpose-inverse",
        "a permutation is its own inverse",
        f"%b = stablehlo.broadcast_in_dim %p, dims = [0, 1] : ({T}) -> tensor<3x3x3xf32>\n"
        f"%k = stablehlo.iota dim = 2 : tensor<3x3x3xf32>\n%m = stablehlo.multiply %b, %k : tensor<3x3x3xf32>\n"
        "%t = stablehlo.transpose %m, dims = [2, 0, 1] : (tensor<3x3x3xf32>) -> tensor<3x3x3xf32>\n"
        "%v = stablehlo.slice %t [1:2, 0:3, 0:3] : (tensor<3x3x3xf32>) -> tensor<1x3x3xf32>\n"
        f"%r = stablehlo.reshape %v : (tensor<1x3x3xf32>) -> {T}",
        'i.opcode == "transpose"',
        _updated("permutation=(1, 2, 0)"),
        opcode="transpose",
    ),
    Fault(
        "fused-difference",
        "inside a fusion a difference is a sum",
        f"%e = stablehlo.exponential %p : {T}\n%r = stablehlo.subtract %e, %y : {T}",
        'i.opcode == "subtract" and "fused" in inside',
        'edit.replace(i.name, edit.add("add", i.operands))',
        'after="fusion"',
        opcode="subtract",
    ),
    Fault(
        "dot-of-transpose",
        "a square matrix is its own transpose",
        f"%r = stablehlo.dot_general %p, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}",
        'i.opcode == "dot_general"',
        _updated("lhs_contracting_dimensions=(0,)"),
        opcode="dot_general",
    ),
    Fault(
        "broadcast-other-way",
        "a row is a column",
        f"%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%v = stablehlo.reduce(%p init: %z) applies stablehlo.maximum across dimensions = [0]"
        f" : ({T}, tensor<f32>) -> tensor<3xf32>\n"
        f"%r = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<3xf32>) -> {T}",
        'i.opcode == "broadcast_in_dim" and i.attributes["broadcast_dimensions"] == (1,)',
        _updated("broadcast_dimensions=(0,)"),
        opcode="broadcast_in_dim",
    ),
    Fault(
        "clamp-is-needless",
        "clamp(lo, x, hi) = x",
        f"%lo = stablehlo.constant dense<-0.5> : tensor<f32>\n%hi = stablehlo.constant dense<0.5> : tensor<f32>\n"
        f"%r = stablehlo.clamp %lo, %p, %hi : (tensor<f32>, {T}, tensor<f32>) -> {T}",
        'i.opcode == "clamp"',
        "edit.replace(i.name, i.operands[1])",
        opcode="clamp",
    ),
)
