"""Chooses what an instruction becomes, and has it emitted.

Contractions, convolutions, sorts and the like have kernels of their own; what has an elemental form becomes a loop nest;
a fusion that has none, or whose code would be too long, is taken apart into one kernel an instruction; what is left is
done by the operation's own NumPy rule, called back from compiled code. Equal instructions are lowered once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from compiler.analysis.values import leaves
from compiler.backends.cpu.emit.loop_kernel import emit_loop_kernel
from compiler.backends.cpu.emit.reduction_kernel import emit_reduction_kernel
from compiler.backends.cpu.lowered import (
    Buffer,
    Embedded,
    LibraryCall,
    Lowered,
    Move,
    Operand,
    Result,
    Temporary,
    Use,
    numbered,
)
from compiler.backends.cpu.structure import structure_of
from compiler.backends.cpu.target import Target
from compiler.ir.program import Attributes, Computation, Instruction, Module, make_computation
from compiler.ir.types import TensorType, TupleType, Type
from compiler.kernel.elemental import Fold
from compiler.kernel.expansion import CannotExpand
from compiler.kernel.loop_nest import LoopNest, concatenation_nests, nest_of

Emitter = Callable[["Lowering", Computation, Instruction], "Use | None"]
"""The kernel of one instruction inside a computation; None when it has no special one after all."""

_INNER_FOLD_LIMIT = 64
"""A reduction inside a fusion is done again for each element that asks for it; longer ones get a kernel."""


@dataclass
class Lowering:
    """Lowers the instructions of one module.

    Attributes:
        module: where called computations are found.
        target: the processor.
        threads: how many threads share the work of a kernel.
        emitters: kernels of operations that are no plain loop nests.
    """

    module: Module
    target: Target
    threads: int
    emitters: Mapping[str, Emitter] = field(default_factory=dict)
    _known: dict[Any, Lowered] = field(default_factory=dict)

    @property
    def computations(self) -> Mapping[str, Computation]:
        """All computations of the module."""
        return self.module.computations

    def lower(self, computation: Computation, instruction: Instruction) -> Lowered:
        """The kernels of an instruction that is run as it stands."""
        key = structure_of(self.module, computation, instruction)
        found = self._known.get(key) if key is not None else None
        if found is None:
            found = self._lower(computation, instruction)
            if key is not None and not _has_library_call(found):
                self._known[key] = found
        return found

    def _lower(self, computation: Computation, instruction: Instruction) -> Lowered:
        if instruction.opcode == "copy" and _same_memory(computation, instruction):
            return Lowered((Move(Operand(0), Result(0), instruction.tensor.bytes),))
        if all(kind.size == 0 for _, kind in leaves(instruction.type)) and leaves_exist(instruction.type):
            return Lowered(())
        if instruction.opcode == "fusion":
            body = self.computations[instruction.called[0]]
            use = self._fused(body)
            if use is not None:
                return Lowered((use,))
            return self._product_apart(body) or self._apart(body)
        if instruction.opcode == "concatenate":
            joined = self._joined(computation, instruction)
            if joined is not None:
                return joined
        return Lowered((self._single(computation, instruction),))

    def _fused(self, body: Computation) -> Use | None:
        from compiler.backends.cpu.emit.contraction_kernel import output_fusion

        special = output_fusion(self, body)
        if special is not None:
            return special
        try:
            return self.loops(body)
        except (CannotExpand, RecursionError):
            return None

    def loops(self, body: Computation) -> Use:
        """A computation as one loop nest. Raises CannotExpand where it has no such form."""
        nest = nest_of(body, self.computations)
        return self.nest_use(nest, len(body.parameters))

    def nest_use(self, nest: LoopNest, operands: int) -> Use:
        """The kernel of a loop nest."""
        _check_folds(nest)
        if isinstance(nest.stores[0].value, Fold) and nest.folded:
            code, kind = emit_reduction_kernel(nest, operands, self.target, self.threads), "reduction"
        else:
            code, kind = emit_loop_kernel(nest, operands, self.target, self.threads), "loop"
        buffers = numbered(operands, len(nest.stores))
        before: tuple[Move, ...] = ()
        if nest.update_of is not None:
            before = (Move(Operand(nest.update_of), Result(0), nest.updated_bytes),)
        return Use(code, buffers, kind, before, nest)

    def _single(self, computation: Computation, instruction: Instruction) -> Use:
        emitter = self.emitters.get(instruction.opcode)
        try:
            if emitter is not None:
                use = emitter(self, computation, instruction)
                if use is not None:
                    return use
            return self.loops(solo(computation, instruction))
        except (CannotExpand, RecursionError):
            return library_use(computation, instruction)

    def _joined(self, computation: Computation, instruction: Instruction) -> Lowered | None:
        """A concatenation as one copy an operand, each into its part of the result."""
        try:
            nests = concatenation_nests(solo(computation, instruction))
        except CannotExpand:
            return None
        steps = []
        for number, nest in nests:
            code = emit_loop_kernel(nest, 1, self.target, self.threads)
            steps.append(Use(code, (Operand(number), Result(0)), "loop", (), nest))
        return Lowered(tuple(steps))

    def _product_apart(self, body: Computation) -> Lowered | None:
        """A product into a temporary, then the rest of the fusion as one loop nest."""
        from compiler.backends.cpu.emit.contraction_kernel import product_apart

        found = product_apart(body)
        if found is None:
            return None
        product, rest = found
        try:
            use = self.loops(rest)
        except CannotExpand:
            return None
        places: dict[str, Buffer] = {name: Operand(number) for number, name in enumerate(body.parameters)}
        places[product.name] = Temporary(0)
        steps = self._placed(body, product, places)
        buffers = (*numbered(len(body.parameters), 0), Temporary(0), Result(0))
        steps.append(Use(use.code, buffers, use.kind, use.before, use.nest))
        return Lowered(tuple(steps), (product.tensor.bytes,))

    def _apart(self, body: Computation) -> Lowered:
        """A fusion as one kernel an instruction, with temporaries between them."""
        places: dict[str, Buffer | tuple[Buffer, ...]] = {}
        root = body.root_instruction
        outputs = root.operands if root.opcode == "tuple" else (root.name,)
        if isinstance(root.type, TupleType) and root.opcode != "tuple":
            outputs = ()
        temporaries: list[int] = []
        steps: list[Use | Move] = []
        for instruction in body:
            name = instruction.name
            if instruction.opcode == "parameter":
                places[name] = Operand(instruction.attributes["index"])
            elif instruction.opcode == "constant":
                places[name] = Embedded(instruction.literal)
            elif (
                instruction.opcode in ("reshape", "bitcast")
                and name not in outputs
                and _is_row_major(body, instruction)
            ):
                places[name] = places[instruction.operands[0]]
            elif instruction.opcode == "get_tuple_element":
                several = places[instruction.operands[0]]
                assert isinstance(several, tuple)
                places[name] = several[instruction.attributes["index"]]
            elif isinstance(instruction.type, TupleType) and instruction.opcode != "tuple":
                parts = [leaf.bytes for _, leaf in leaves(instruction.type)]
                if instruction is root:
                    places[name] = tuple(Result(number) for number in range(len(parts)))
                else:
                    places[name] = tuple(Temporary(len(temporaries) + number) for number in range(len(parts)))
                    temporaries += parts
                steps += self._placed(body, instruction, places)
            elif instruction.opcode != "tuple":
                if name in outputs:
                    places[name] = Result(outputs.index(name))
                else:
                    places[name] = Temporary(len(temporaries))
                    temporaries.append(instruction.tensor.bytes)
                steps += self._placed(body, instruction, places)
        for number, name in enumerate(outputs):
            found = places[name]
            if found != Result(number):
                assert not isinstance(found, tuple)
                steps.append(Move(found, Result(number), body[name].tensor.bytes))
        return Lowered(tuple(steps), tuple(temporaries))

    def _placed(
        self,
        body: Computation,
        instruction: Instruction,
        places: Mapping[str, Buffer | tuple[Buffer, ...]],
    ) -> list[Use | Move]:
        lowered = self.lower(body, instruction)

        def place(buffer: Buffer) -> Buffer:
            if isinstance(buffer, Operand):
                found = places[instruction.operands[buffer.index]]
                assert not isinstance(found, tuple)
                return found
            if not isinstance(buffer, Result):
                return buffer
            found = places[instruction.name]
            return found[buffer.index] if isinstance(found, tuple) else found

        def moved(move: Move) -> Move:
            return Move(place(move.source), place(move.target), move.size)

        found: list[Use | Move] = []
        for step in lowered.steps:
            if isinstance(step, Move):
                found.append(moved(step))
            else:
                buffers = tuple(place(buffer) for buffer in step.buffers)
                before = tuple(moved(move) for move in step.before)
                found.append(Use(step.code, buffers, step.kind, before, step.nest))
        return found


def _check_folds(nest: LoopNest) -> None:
    """Refuses a long reduction that would be done anew for each element."""
    for node in nest.nodes:
        if isinstance(node, Fold) and not (nest.folded and node in nest.roots):
            count = 1
            for axis in node.over:
                count *= axis.extent
            if count > _INNER_FOLD_LIMIT and not nest.window:
                raise CannotExpand("it holds a long reduction")


def _has_library_call(lowered: Lowered) -> bool:
    return any(isinstance(step, Use) and isinstance(step.code, LibraryCall) for step in lowered.steps)


def _same_memory(computation: Computation, instruction: Instruction) -> bool:
    operand = computation[instruction.operands[0]].type
    if not isinstance(operand, TensorType) or not isinstance(instruction.type, TensorType):
        return False
    return operand.minor_to_major == instruction.type.minor_to_major


def _is_row_major(body: Computation, instruction: Instruction) -> bool:
    operand = body[instruction.operands[0]].tensor
    return operand.layout is None and instruction.tensor.layout is None


def leaves_exist(value_type: Type) -> bool:
    """Whether a type holds any tensor."""
    return any(True for _ in leaves(value_type))


def solo(computation: Computation, instruction: Instruction) -> Computation:
    """A computation of one instruction, whose operands are its parameters."""
    found: dict[str, Instruction] = {}
    names = []
    for index, name in enumerate(instruction.operands):
        parameter = f"{name}.as.operand.{index}"
        found[parameter] = Instruction(
            parameter, "parameter", computation[name].type, (), Attributes(index=index)
        )
        names.append(parameter)
    found[instruction.name] = instruction.with_operands(tuple(names))
    return make_computation(f"only.{instruction.name}", found, instruction.name)


def library_use(computation: Computation, instruction: Instruction) -> Use:
    """The operation's own rule, called back."""
    inputs = sum(1 for name in instruction.operands for _ in leaves(computation[name].type))
    outputs = sum(1 for _ in leaves(instruction.type))
    return Use(LibraryCall(computation.name, instruction.name), numbered(inputs, outputs), "library")


__all__ = ["Emitter", "Lowering", "Temporary", "library_use", "solo"]
