"""Fusion: producers move into the kernels of their consumers.

Runs once the program is in its final form but for layouts. Computations are walked from the root backwards: when an
instruction is reached, the groups of all its users are known, so one walk decides every edge. A producer joins its
users' group when they are all in one (nothing is computed twice but by broadcasting, and no cycle can arise); cheap ones
are duplicated into several. Every edge considered is a decision with an estimate and a reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.analysis.values import CONTROL
from compiler.decisions.fusion import FUSE, FUSION, EdgeCost, Machine, choices
from compiler.ir.editor import Editor
from compiler.ir.program import Computation, Instruction
from compiler.ir.types import TensorType
from compiler.ops import OPERATIONS
from compiler.ops.record import Trait
from compiler.passes.base import Option, PassContext
from compiler.passes.fusion_outline import outline

MOVERS = frozenset(
    {
        "broadcast_in_dim",
        "reshape",
        "transpose",
        "slice",
        "reverse",
        "pad",
        "concatenate",
        "iota",
        "dynamic_slice",
    }
)
"""Data movement that a loop computes as an index."""
ROOT_ONLY = frozenset({"reduce", "dynamic_update_slice"})
"""May take producers in, but not go into a consumer."""
PRODUCER_ONLY_OUTPUT = frozenset({"dot_general", "convolution"})
"""May have an elementwise consumer of their own shape computed on their results as they are stored."""


@dataclass
class Group:
    """One kernel to be: its root, its members (root included), and what it reads."""

    root: Instruction
    members: dict[str, Instruction] = field(default_factory=dict)
    duplicated: set[str] = field(default_factory=set)
    evaluations: dict[str, float] = field(default_factory=dict)
    """How many elements of each member are computed, repeats counted."""
    hero: str = ""
    """The contraction or reduction that shapes the kernel, if there is one."""
    inputs: set[str] = field(default_factory=set)
    opcodes: set[str] = field(default_factory=set)

    def add(self, instruction: Instruction, evaluations: float) -> None:
        """Takes an instruction in."""
        self.members[instruction.name] = instruction
        self.evaluations[instruction.name] = evaluations
        self.opcodes.add(instruction.opcode)
        self.inputs.discard(instruction.name)
        self.inputs.update(operand for operand in instruction.operands if operand not in self.members)
        if instruction.opcode in ROOT_ONLY or instruction.opcode in PRODUCER_ONLY_OUTPUT:
            self.hero = instruction.name


class Fusion:
    """See the module's docstring."""

    name = "fusion"
    options: tuple[Option, ...] = (
        Option("fusion_max_size", 80, "instructions in one fusion, at most"),
        Option("fusion_max_operands", 24, "operands of one fusion, at most"),
    )

    def run(self, editor: Editor, context: PassContext) -> None:
        """Fuses in every computation that runs as it stands."""
        for name in run_computations(editor):
            context.check_cancelled()
            computation = editor.computation(name)
            position = {member: place for place, member in enumerate(computation.instructions)}
            groups = _Walk(computation, context).groups()
            for group in groups:
                if len(group.members) > 1:
                    order = sorted(group.members, key=position.__getitem__)
                    outline(editor, name, group.root, order, group.duplicated, group.hero)


def run_computations(editor: Editor) -> list[str]:
    """The entry and what control flow runs from it."""
    found: dict[str, None] = {}
    stack = [editor.entry]
    while stack:
        name = stack.pop()
        if name not in found:
            found[name] = None
            for instruction in editor.working(name).instructions.values():
                if instruction.opcode in CONTROL:
                    stack.extend(instruction.called)
    return list(found)


def is_elementwise(instruction: Instruction) -> bool:
    """True for operations that work element by element on tensors."""
    record = OPERATIONS.get(instruction.opcode)
    return (
        record is not None and Trait.ELEMENTWISE in record.traits and isinstance(instruction.type, TensorType)
    )


def _in_loops(instruction: Instruction) -> bool:
    return is_elementwise(instruction) or instruction.opcode in MOVERS


def _is_cheap(instruction: Instruction) -> bool:
    """Worth computing anew in every kernel that needs it: no data of its own to speak of."""
    if instruction.opcode == "constant":
        return instruction.tensor.size == 1 or instruction.literal.is_splat
    return instruction.opcode == "iota"


class _Walk:
    """One computation's walk from the root backwards."""

    def __init__(self, computation: Computation, context: PassContext) -> None:
        self._computation = computation
        self._context = context
        self._machine = Machine(cache_bytes=max(context.capabilities.cache_bytes, default=1 << 20))
        self._group_of: dict[str, Group] = {}
        self._users: dict[str, list[Instruction]] = {name: [] for name in computation.instructions}
        for instruction in computation:
            for operand in dict.fromkeys(instruction.operands):
                self._users[operand].append(instruction)

    def groups(self) -> list[Group]:
        """Decides every edge and returns the groups, users before producers."""
        found: list[Group] = []
        for instruction in reversed(list(self._computation)):
            if instruction.opcode == "parameter" or not isinstance(instruction.type, TensorType):
                continue
            if _is_cheap(instruction):
                self._duplicate(instruction)
                continue
            group = self._join(instruction)
            if group is None:
                group = self._start(instruction)
                found.append(group)
            self._group_of[instruction.name] = group
        return found

    def _start(self, instruction: Instruction) -> Group:
        group = Group(instruction)
        group.add(instruction, float(instruction.tensor.size))
        return group

    def _takes_producers(self, instruction: Instruction) -> bool:
        loops = _in_loops(instruction) or instruction.opcode in ROOT_ONLY
        return loops and instruction.name in self._group_of

    def _duplicate(self, instruction: Instruction) -> None:
        """Clones a cheap value into each group that reads it, if every reader can take it."""
        for group in {id(g): g for g in self._readers(instruction)}.values():
            if self._computation.root == instruction.name:
                continue
            group.add(instruction, 0.0)
            group.duplicated.add(instruction.name)

    def _readers(self, instruction: Instruction) -> list[Group]:
        groups = []
        for user in self._users[instruction.name]:
            if self._takes_producers(user) and self._operand_fusable(user, instruction):
                groups.append(self._group_of[user.name])
        return groups

    def _operand_fusable(self, user: Instruction, producer: Instruction) -> bool:
        """Not into the initial value of a reduction, nor under the buffer that is updated in place."""
        if user.opcode == "reduce":
            return producer.tensor.rank > 0 or producer.opcode == "constant"
        if user.opcode == "dynamic_update_slice":
            return user.operands[0] != producer.name and user.operands.count(producer.name) == 1
        return True

    def _join(self, producer: Instruction) -> Group | None:
        users = self._users[producer.name]
        if not users or self._computation.root == producer.name:
            return None
        if not (_in_loops(producer) or producer.opcode in PRODUCER_ONLY_OUTPUT):
            return None
        if not all(self._takes_producers(user) and self._operand_fusable(user, producer) for user in users):
            return None
        groups = {id(self._group_of[user.name]): self._group_of[user.name] for user in users}
        group = next(iter(groups.values()))
        edge = self._edge(producer, group, users)
        forbidden = self._forbidden(producer, group, users, len(groups))
        options, policy, reason = choices(edge, self._machine, forbidden)
        subject = f"{self._computation.name}/{producer.name}->{group.root.name}"
        chosen = self._context.decider.decide(
            FUSION,
            subject,
            options,
            policy,
            reason,
            evidence={
                "producer_bytes": edge.producer_bytes,
                "evaluations": edge.evaluations,
                "elements": edge.producer_elements,
                "flops": edge.flops,
                "transcendentals": edge.transcendentals,
            },
            locations=(producer.location, group.root.location),
        )
        if chosen != FUSE:
            return None
        group.add(producer, edge.evaluations)
        return group

    def _edge(self, producer: Instruction, group: Group, users: list[Instruction]) -> EdgeCost:
        evaluations = 0.0
        for user in users:
            times = group.evaluations.get(user.name, float(_size(user)))
            if user.opcode in ("reduce", "dynamic_update_slice"):
                times = float(producer.tensor.size)
            elif user.opcode in ("slice", "dynamic_slice", "pad", "concatenate"):
                times = min(times, float(producer.tensor.size) * times / max(_size(user), 1))
            evaluations += times
        if len(users) > 1 and all(is_elementwise(user) for user in users):
            evaluations = max(group.evaluations.get(user.name, 0.0) for user in users)
        flops, transcendentals = _work(producer)
        strided = producer.opcode == "transpose" and _moves_minor(producer) and not _is_contraction(group)
        return EdgeCost(
            producer.tensor.bytes, producer.tensor.size, evaluations, flops, transcendentals, strided
        )

    def _forbidden(self, producer: Instruction, group: Group, users: list[Instruction], groups: int) -> str:
        if groups > 1:
            return f"its users are in {groups} kernels, so it must be in memory for them"
        if len(group.members) >= self._context.options["fusion_max_size"]:
            return f"the fusion already has {len(group.members)} instructions"
        if len(group.inputs | set(producer.operands)) > self._context.options["fusion_max_operands"]:
            return f"the fusion would read more than {self._context.options['fusion_max_operands']} arrays"
        if producer.opcode in PRODUCER_ONLY_OUTPUT:
            reason = self._epilogue_forbidden(producer, group)
            if reason:
                return reason
        return self._context.capabilities.accepts_fusion(
            group_kind(group), frozenset(group.opcodes | {producer.opcode})
        )

    def _epilogue_forbidden(self, producer: Instruction, group: Group) -> str:
        if group.hero:
            return f"the kernel is already shaped by {group.hero}"
        if producer.opcode == "convolution":
            return "convolutions store their results before anything else is computed on them"
        for member in group.members.values():
            if member.opcode == "broadcast_in_dim" or not member.operands:
                continue
            if not is_elementwise(member) or member.tensor.shape != producer.tensor.shape:
                return f"{member.name} does not work on the product's elements one by one"
        return ""


def _is_contraction(group: Group) -> bool:
    return bool(group.hero) and group.members[group.hero].opcode in PRODUCER_ONLY_OUTPUT


def _size(instruction: Instruction) -> int:
    return instruction.tensor.size if isinstance(instruction.type, TensorType) else 0


def _moves_minor(transpose: Instruction) -> bool:
    permutation = transpose.attributes["permutation"]
    moved = [dim for dim in permutation if transpose.tensor.shape[permutation.index(dim)] > 1]
    return bool(moved) and permutation[-1] != len(permutation) - 1


def _work(instruction: Instruction) -> tuple[float, float]:
    """Arithmetic and transcendental operations of one element."""
    record = OPERATIONS.get(instruction.opcode)
    if instruction.opcode in PRODUCER_ONLY_OUTPUT:
        return 1e6, 0.0
    if record is None or Trait.ELEMENTWISE not in record.traits:
        return 0.2, 0.0
    return (0.0, 1.0) if record.transcendental else (1.0, 0.0)


def group_kind(group: Group) -> str:
    """XLA's name for the kind of kernel: kLoop, kInput (a reduction at its root), kOutput (a contraction inside)."""
    if group.hero:
        opcode = group.members[group.hero].opcode
        return "kOutput" if opcode in PRODUCER_ONLY_OUTPUT else "kInput" if opcode == "reduce" else "kLoop"
    return "kLoop"
