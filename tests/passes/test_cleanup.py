"""Dead code, common subexpressions, inlining, composites, CHLO, constant folding."""

from __future__ import annotations

import numpy as np

from compiler.ir.editor import Editor
from compiler.ir.location import CallSite
from compiler.ir.program import Attributes, Module
from compiler.ir.types import F32, I32, TensorType
from compiler.ops import SEMANTICS
from compiler.passes.call_inliner import CallInliner
from compiler.passes.chlo_legalize import ChloLegalize
from compiler.passes.composite_lowering import CompositeLowering
from compiler.passes.constant_folding import ConstantFolding
from compiler.passes.cse import CommonSubexpressionElimination
from compiler.passes.dce import DeadCodeElimination
from tests.builder import ModuleBuilder
from tests.passes.harness import assert_same_results, context, opcodes, run, transformed


def calling(depth: int) -> Module:
    """main calls f<depth>, each f calls the next lower one twice, f0 multiplies by 3."""
    m = ModuleBuilder()
    f = m.computation("f0")
    x = f.parameter(F32, 2)
    f.root(f.op("multiply", x, f.splat(3, F32, 2)))
    for level in range(1, depth + 1):
        g = m.computation(f"f{level}")
        x = g.parameter(F32, 2)
        once = g.op("call", x, called=(f"f{level - 1}",))
        g.root(g.op("add", once, g.op("call", once, called=(f"f{level - 1}",))))
    main = m.computation("main")
    main.root(main.op("call", main.parameter(F32, 2), called=(f"f{depth}",)))
    return m.build()


def test_dce_takes_dead_trees_and_uncalled_computations() -> None:
    m = ModuleBuilder()
    m.reducer("add", F32)
    f = m.computation("main")
    x, _unused = f.parameter(F32, 2), f.parameter(F32, 2)
    f.op("exponential", f.op("negate", x))
    f.root(f.op("abs", x))
    after, rewrites = run(m.build(), DeadCodeElimination())
    assert list(after.computations) == ["main"]
    assert opcodes(after) == ["abs"]
    assert len(after.entry_computation.parameters) == 2
    assert [entry.rule.id for entry in rewrites] == ["uncalled-computation", "unused-value"]


def test_dce_keeps_effects_inside_loops_and_calls() -> None:
    m = ModuleBuilder()
    f = m.computation("noisy")
    x = f.parameter(F32, 2)
    f.add("custom_call", TensorType(F32, (2,)), x, call_target_name="log", has_side_effect=True)
    f.root(x)
    main = m.computation("main")
    y = main.parameter(F32, 2)
    main.op("call", y, called=("noisy",))
    main.root(main.op("abs", y))
    after, rewrites = run(m.build(), DeadCodeElimination())
    assert "call" in opcodes(after)
    assert [entry.root for entry in rewrites] == []


def test_cse_merges_equal_values_and_commuted_operands() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x, y = f.parameter(I32, 3), f.parameter(I32, 3)
    sums = [f.op("add", x, y), f.op("add", y, x)]
    differences = [f.op("subtract", x, y), f.op("subtract", y, x)]
    constants = [f.splat(7, I32, 3), f.splat(7, I32, 3)]
    tops = [f.op("multiply", s, c) for s, c in zip(sums, constants, strict=True)]
    f.root(*tops, *differences)
    after = transformed(m.build(), CommonSubexpressionElimination())
    assert opcodes(after) == ["add", "subtract", "subtract", "multiply", "tuple"]


def test_cse_compares_called_computations_by_meaning() -> None:
    m = ModuleBuilder()
    bodies = [m.reducer("add", F32), m.reducer("add", F32), m.reducer("maximum", F32)]
    f = m.computation("main")
    x, zero = f.parameter(F32, 2, 3), f.constant(0, F32)
    f.root(*[f.op("reduce", x, zero, called=(body,), dimensions=(1,)) for body in bodies])
    after = transformed(m.build(), CommonSubexpressionElimination())
    assert opcodes(after) == ["reduce", "reduce", "tuple"]


def test_cse_tells_zeros_and_types_apart() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    f.root(f.constant(0.0, F32), f.constant(-0.0, F32), f.constant(0, I32))
    after, rewrites = run(m.build(), CommonSubexpressionElimination())
    assert not rewrites and len(after.entry_computation) == 4


def test_a_refused_merge_leaves_the_rest_alone() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    x = f.parameter(F32, 3)
    f.root(*[f.op("negate", x) for _ in range(3)])
    module = m.build()
    editor = Editor(module, SEMANTICS, gate=lambda identity: "negate.3" not in identity)
    editor.begin_stage("cse")
    CommonSubexpressionElimination().run(editor, context())
    assert editor.rewrites_refused == 1 and editor.rewrites_committed == 1
    assert opcodes(editor.snapshot()) == ["negate", "negate", "tuple"]


def test_inlining_flattens_nested_calls() -> None:
    module = calling(3)
    after = transformed(module, CallInliner())
    assert list(after.computations) == ["main"]
    assert opcodes(after).count("multiply") == 8
    call = module.entry_computation.root_instruction
    number = call.name.split(".")[1]
    inlined = after.entry_computation.root_instruction
    assert inlined.name.split(".")[1] == number
    assert isinstance(inlined.location, CallSite)
    assert inlined.location.caller == call.location


def test_inlining_stops_at_its_limit() -> None:
    module = calling(4)
    after, _ = run(module, CallInliner(), given=context(inline_limit=20))
    assert "call" in {i.opcode for c in after.computations.values() for i in c}
    assert_same_results(module, after)


def composite() -> Module:
    m = ModuleBuilder()
    f = m.computation("double")
    x = f.parameter(F32, 2)
    f.root(f.op("add", x, x))
    main = m.computation("main")
    y = main.parameter(F32, 2)
    main.root(
        main.op(
            "composite", y, called=("double",), name="my.double", composite_attributes=Attributes(), version=0
        )
    )
    return m.build()


def test_composites_become_their_decompositions_unless_supported() -> None:
    assert opcodes(transformed(composite(), CompositeLowering())) == ["add"]
    after, rewrites = run(composite(), CompositeLowering(), given=context("composite.my.double"))
    assert opcodes(after) == ["composite"] and not rewrites


def test_chlo_is_decomposed_unless_supported() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    f.root(f.op("chlo.square", f.parameter(F32, 3)))
    module = m.build()
    assert "chlo.square" not in opcodes(transformed(module, ChloLegalize()))
    after, rewrites = run(module, ChloLegalize(), given=context("chlo.square"))
    assert after is module and not rewrites


def test_folding_evaluates_constants() -> None:
    m = ModuleBuilder()
    add = m.reducer("add", F32)
    f = m.computation("main")
    table = f.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    total = f.op("reduce", table, f.constant(0, F32), called=(add,), dimensions=(1,))
    f.root(f.op("add", f.op("negate", total), f.parameter(F32, 2)))
    after = transformed(m.build(), ConstantFolding(), DeadCodeElimination())
    assert opcodes(after) == ["add"]
    folded = next(i for i in after.entry_computation if i.opcode == "constant")
    assert folded.literal.array.tolist() == [-3.0, -12.0]


def test_folding_keeps_splats_of_any_size() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    wide = f.shaped("broadcast_in_dim", (1 << 20, 1 << 20), f.constant(2, F32), broadcast_dimensions=())
    f.root(f.op("multiply", f.op("transpose", wide, permutation=(1, 0)), f.splat(3, F32, 1 << 20, 1 << 20)))
    after, _ = run(m.build(), ConstantFolding())
    literal = after.entry_computation.root_instruction.literal
    assert literal.is_splat and literal.splat_value == 6 and literal.type.shape == (1 << 20, 1 << 20)


def test_folding_respects_its_limit_and_what_must_stay() -> None:
    m = ModuleBuilder()
    f = m.computation("main")
    row = f.constant(np.arange(4, dtype=np.float32))
    spread = f.shaped("broadcast_in_dim", (4, 100), row, broadcast_dimensions=(0,))
    held = f.op("optimization_barrier", row)
    f.root(spread, held)
    after, rewrites = run(m.build(), ConstantFolding(), given=context(fold_limit=100))
    assert opcodes(after) == ["broadcast_in_dim", "optimization_barrier", "tuple"] and not rewrites
    after, rewrites = run(m.build(), ConstantFolding(), given=context(fold_limit=400))
    assert opcodes(after) == ["optimization_barrier", "tuple"] and len(rewrites) == 1
