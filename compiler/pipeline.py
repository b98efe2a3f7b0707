"""The stage table: what runs, in which order, and why it stands there.

One line a stage. A backend and plugins add stages next to the ones named here. Stages marked required make the form that
code generation needs; all others may be disabled or stopped before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compiler.backends.base import Backend, Insertion
from compiler.options import OptionError
from compiler.pass_manager import Stage
from compiler.passes.algebraic_simplifier import AlgebraicSimplifier
from compiler.passes.base import Option
from compiler.passes.batch_norm_expander import BatchNormExpander
from compiler.passes.buffer_assignment import BufferAssignment
from compiler.passes.call_inliner import CallInliner
from compiler.passes.chlo_legalize import ChloLegalize
from compiler.passes.composite_lowering import CompositeLowering
from compiler.passes.conditional_simplifier import ConditionalSimplifier
from compiler.passes.constant_folding import ConstantFolding
from compiler.passes.convolution_canonicalizer import ConvolutionCanonicalizer
from compiler.passes.copy_insertion import CopyInsertion
from compiler.passes.cse import CommonSubexpressionElimination
from compiler.passes.dce import DeadCodeElimination
from compiler.passes.dot_canonicalizer import DotCanonicalizer
from compiler.passes.flatten_call_graph import FlattenCallGraph
from compiler.passes.fusion import Fusion
from compiler.passes.layout_assignment import LayoutAssignment, ReshapeToBitcast
from compiler.passes.layout_normalization import LayoutNormalization
from compiler.passes.map_inliner import MapInliner
from compiler.passes.optimization_barrier_expander import OptimizationBarrierExpander
from compiler.passes.schedule import Scheduler
from compiler.passes.shape_canonicalizer import ShapeCanonicalizer
from compiler.passes.sort_simplifier import SortSimplifier
from compiler.passes.transpose_folding import TransposeFolding
from compiler.passes.tuple_simplifier import TupleSimplifier
from compiler.passes.while_loop_invariant_code_motion import WhileLoopInvariantCodeMotion
from compiler.passes.while_loop_simplifier import WhileLoopSimplifier
from compiler.passes.while_loop_trip_count_annotator import WhileLoopTripCountAnnotator
from compiler.passes.zero_sized_elimination import ZeroSizedElimination


def common_stages() -> list[Stage]:
    """The pipeline before backends and plugins have their say."""
    return [
        Stage(
            "layout-normalization",
            LayoutNormalization(),
            "HLO text may hold another compiler's layouts, which nobody after this expects",
            required=True,
        ),
        Stage("call-inliner", CallInliner(), "everything after it sees whole functions"),
        Stage(
            "composite-lowering",
            CompositeLowering(),
            "what the backend has no kernel for becomes its decomposition",
        ),
        Stage("chlo-legalize", ChloLegalize(), "the simplifier knows StableHLO only"),
        Stage(
            "batch-norm-expander",
            BatchNormExpander(),
            "sums and arithmetic simplify and fuse, a batch norm does not",
        ),
        Stage("flatten-call-graph", FlattenCallGraph(), "each loop may now be changed for itself"),
        Stage("map-inliner", MapInliner(), "a map is elementwise operations in disguise"),
        Stage("tuple-simplifier", TupleSimplifier(), "functions of several results are inlined now"),
        Stage(
            "zero-sized-hlo-elimination",
            ZeroSizedElimination(),
            "nobody after this needs to think of nothing",
        ),
        Stage("dce", DeadCodeElimination(), "inlining leaves unused values behind"),
        Stage("cse", CommonSubexpressionElimination(), "inlined functions repeat constants and broadcasts"),
        Stage("constant-folding", ConstantFolding(), "shows the simplifiers what is known"),
        Stage("algebraic-simplifier", AlgebraicSimplifier(), "on the smallest program so far"),
        Stage("while-loop-simplifier", WhileLoopSimplifier(), "bounds are constants now"),
        Stage("conditional-simplifier", ConditionalSimplifier(), "so are predicates"),
        Stage(
            "algebraic-simplifier.2",
            AlgebraicSimplifier(),
            "inlined turns and branches meet the code around them",
        ),
        Stage(
            "while-loop-invariant-code-motion",
            WhileLoopInvariantCodeMotion(),
            "only real work is left in the bodies",
        ),
        Stage(
            "while-loop-trip-count-annotator",
            WhileLoopTripCountAnnotator(),
            "when loops have their final state; costs and schedules ask for it",
        ),
        Stage("sort-simplifier", SortSimplifier(), "what nobody reads of a sort is dead by now"),
        Stage("transpose-folding", TransposeFolding(), "products read their operands in any order"),
        Stage("dot-canonicalizer", DotCanonicalizer(), "kernels know one form of product"),
        Stage(
            "convolution-canonicalizer", ConvolutionCanonicalizer(), "kernels pad and reverse as they read"
        ),
        Stage(
            "optimization-barrier-expander",
            OptimizationBarrierExpander(),
            "the passes that barriers hold back are over, but for the last merging of equal values",
        ),
        Stage(
            "reshape-broadcast-transpose-canonicalizer",
            ShapeCanonicalizer(),
            "ahead of layouts and fusion, which expect broadcasts that only repeat",
        ),
        Stage("late-constant-folding", ConstantFolding(), "simplification leaves constants together"),
        Stage("late-cse", CommonSubexpressionElimination(), "and equal values"),
        Stage("late-dce", DeadCodeElimination(), "fusion must not compute what nobody reads"),
        Stage(
            "layout-assignment",
            LayoutAssignment(),
            "when all transposes are final, ahead of fusion, which prices what moves",
        ),
        Stage("fusion", Fusion(), "once the program is in its final form"),
        Stage(
            "reshape-to-bitcast",
            ReshapeToBitcast(),
            "reshapes that no fusion took are names for the same memory",
        ),
        Stage(
            "late-flatten-call-graph",
            FlattenCallGraph(),
            "each body has one place in the order of execution",
            required=True,
        ),
        Stage("scheduler", Scheduler(), "copies and memory depend on the order", required=True),
        Stage(
            "copy-insertion",
            CopyInsertion(),
            "only where the order makes two values meet in one buffer",
            required=True,
        ),
        Stage("buffer-assignment", BufferAssignment(), "last: nothing may change any more", required=True),
    ]


def build_stages(backend: Backend, insertions: Iterable[Insertion] = ()) -> list[Stage]:
    """The pipeline for a backend, with its own stages and the plugins' in their places.

    Raises:
        OptionError: when a stage is to stand next to one that does not exist, or has the id of another.
    """
    stages = [stage for stage in common_stages() if stage.id not in backend.skips()]
    for insertion in (*backend.stages(), *insertions):
        _insert(stages, insertion)
    return stages


def _insert(stages: list[Stage], insertion: Insertion) -> None:
    ids = [stage.id for stage in stages]
    if insertion.id in ids:
        raise OptionError(f"there is a stage {insertion.id!r} already")
    anchor = insertion.before or insertion.after
    if anchor not in ids:
        raise OptionError(f"stage {insertion.id!r} is to stand next to {anchor!r}, which does not exist")
    place = ids.index(anchor) + (1 if insertion.after else 0)
    stages.insert(place, Stage(insertion.id, insertion.make, insertion.why))


def pipeline_options(stages: Sequence[Stage]) -> list[Option]:
    """The options of all passes in the pipeline."""
    found: dict[str, Option] = {}
    for stage in stages:
        for option in getattr(stage.make, "options", ()):
            found[option.name] = option
    return list(found.values())
