"""The entry driver as LLVM IR: every kernel of a module called in schedule order on its planned buffers.

One table of pointers (parameters, results, constants, arena, …) is all that the driver is given. Loops and conditionals
are native; nothing of Python runs between kernels but library calls. Straight-line code is cut into functions of limited
size, because the code generator's time grows faster than a function does.
"""

from __future__ import annotations

from compiler.analysis.plan import Slot
from compiler.analysis.values import leaves
from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.lowered import Buffer, Embedded, Move, Operand, Result
from compiler.backends.cpu.program import KernelCall, Program, aligned
from compiler.backends.cpu.text_builder import TextBuilder, assemble_module
from compiler.ir.program import Computation, Instruction

_STEPS_A_FUNCTION = 48


class DriverWriter:
    """Writes the driver's functions; `instrumented` reads the clock around each kernel."""

    def __init__(self, program: Program, *, instrumented: bool = False) -> None:
        self.program = program
        self.instrumented = instrumented
        self._functions: list[str] = []
        self._declarations: set[str] = set()
        self._count = 0
        self._b = TextBuilder("unused")
        self._pointers: dict[int, str] = {}
        self._array = ""

    @property
    def entry(self) -> str:
        """The symbol to call with the table's address."""
        return "xe.entry.timed" if self.instrumented else "xe.entry"

    def text(self) -> str:
        """The driver's module."""
        entry = self.program.module.entry_computation
        parts = self._parts(entry)
        b = TextBuilder(self.entry, (("ptr", "table"),))
        for part in parts:
            b.call("void", part, "ptr %table")
        self._open(b)
        b.ret()
        self._close()
        return assemble_module(self._functions, self._declarations)

    # Functions

    def _open(self, b: TextBuilder) -> None:
        self._b, self._pointers, self._array = b, {}, ""

    def _close(self) -> None:
        self._functions.append(self._b.text())
        self._declarations |= self._b.declarations

    def _new(self, hint: str) -> TextBuilder:
        self._count += 1
        suffix = ".timed" if self.instrumented else ""
        return TextBuilder(
            f"xe.{hint}.{self._count}{suffix}",
            (("ptr", "table"),),
            linkage="internal",
            attributes="nounwind noinline",
        )

    def _parts(self, computation: Computation) -> list[str]:
        """Functions that together run a computation, each of limited size."""
        program = self.program
        parts: list[str] = []
        pending: list[tuple[Instruction, list[KernelCall | Move]]] = []
        size = 0

        def flush() -> None:
            nonlocal size
            if not pending:
                return
            b = self._new("part")
            self._open(b)
            for instruction, steps in pending:
                for step in steps:
                    self._step(computation, instruction, step)
            b.ret()
            self._close()
            parts.append(b.name)
            pending.clear()
            size = 0

        for instruction in computation:
            place = (computation.name, instruction.name)
            if instruction.opcode in ("while", "case", "if", "call"):
                flush()
                parts += self._control(computation, instruction)
            elif program.steps.get(place):
                steps = program.steps[place]
                pending.append((instruction, steps))
                size += len(steps)
                if size >= _STEPS_A_FUNCTION:
                    flush()
        flush()
        return parts

    def _control(self, computation: Computation, instruction: Instruction) -> list[str]:
        module = self.program.module
        called = [module.computations[name] for name in instruction.called]
        if instruction.opcode == "call":
            return self._parts(called[0])
        bodies = [self._parts(entry) for entry in called]
        if instruction.opcode == "while":
            return [self._loop(called[0], bodies[0], bodies[1])]
        return [self._branches(computation, instruction, bodies)]

    def _loop(self, condition: Computation, test: list[str], body: list[str]) -> str:
        b = self._new("while")
        self._open(b)
        head, inside, done = b.label("test"), b.label("body"), b.label("done")
        address = self._slot(self.program.plan.slot(condition.name, condition.root))
        b.branch(head)
        b.place(head)
        for part in test:
            b.call("void", part, "ptr %table")
        flag = b.compare("ne", b.load("i8", address, 1), 0, "i8")
        b.branch_if(flag, inside, done)
        b.place(inside)
        for part in body:
            b.call("void", part, "ptr %table")
        b.branch(head)
        b.place(done)
        b.ret()
        self._close()
        return b.name

    def _branches(self, computation: Computation, instruction: Instruction, bodies: list[list[str]]) -> str:
        b = self._new("branch")
        self._open(b)
        done = b.label("done")
        address = self._slot(self.program.plan.slot(computation.name, instruction.operands[0]))
        kind = "i8" if instruction.opcode == "if" else "i32"
        index = b.load(kind, address, 1)
        # `if` takes its first branch when true; `case` its last one for an index out of range.
        matches = [("ne", 0)] if instruction.opcode == "if" else [("eq", n) for n in range(len(bodies) - 1)]
        for (predicate, value), parts in zip(matches, bodies, strict=False):
            chosen, other = b.label("branch"), b.label("next")
            b.branch_if(b.compare(predicate, index, value, kind), chosen, other)
            b.place(chosen)
            self._call_all(parts)
            b.branch(done)
            b.place(other)
        self._call_all(bodies[-1])
        b.branch(done)
        b.place(done)
        b.ret()
        self._close()
        return b.name

    def _call_all(self, parts: list[str]) -> None:
        for part in parts:
            self._b.call("void", part, "ptr %table")

    # Buffers

    def _pointer(self, index: int) -> str:
        found = self._pointers.get(index)
        if found is None:
            at = self._b.gep("%table", index, "ptr", "at")
            found = self._b.load("ptr", at, 8, hint="memory")
            if self._b.block == "entry":
                self._pointers[index] = found
        return found

    def _slot(self, slot: Slot) -> str:
        table = self.program.table
        if slot.kind == "arena":
            return self._b.gep(self._pointer(table.arena), slot.offset)
        first = {"parameter": table.parameters, "result": table.results, "constant": table.constants}[
            slot.kind
        ]
        return self._b.gep(self._pointer(first + slot.index), slot.offset if slot.kind != "constant" else 0)

    def _slot_of(self, computation: Computation, instruction: Instruction, buffer: Buffer) -> Slot | None:
        plan = self.program.plan
        if isinstance(buffer, Operand):
            count = 0
            for name in instruction.operands:
                for path, _ in leaves(computation[name].type):
                    if count == buffer.index:
                        return plan.slot(computation.name, name, path)
                    count += 1
        if isinstance(buffer, Result):
            for number, (path, _) in enumerate(leaves(instruction.type)):
                if number == buffer.index:
                    return plan.slot(computation.name, instruction.name, path)
        return None

    def _address(self, computation: Computation, instruction: Instruction, buffer: Buffer) -> str:
        slot = self._slot_of(computation, instruction, buffer)
        if slot is not None:
            return self._slot(slot)
        if isinstance(buffer, Embedded):
            return self._pointer(self.program.table.embedded + self.program.embedded.index(buffer.literal))
        sizes = self.program.lowered[(computation.name, instruction.name)].temporaries
        offset = sum(aligned(size) for size in sizes[: getattr(buffer, "index", 0)])
        return self._b.gep(self._pointer(self.program.table.scratch), offset)

    # Steps

    def _step(self, computation: Computation, instruction: Instruction, step: KernelCall | Move) -> None:
        if isinstance(step, Move):
            self._move(computation, instruction, step)
            return
        for move in step.use.before:
            self._move(computation, instruction, move)
        if self.instrumented:
            self._b.declare("declare i64 @xe.now_ns()")
            before = self._b.call("i64", "xe.now_ns")
            self._kernel(computation, instruction, step)
            self._count_time(step.number, before)
        else:
            self._kernel(computation, instruction, step)

    def _count_time(self, number: int, before: str) -> None:
        b = self._b
        spent = b.op(f"sub i64 {b.call('i64', 'xe.now_ns')}, {before}")
        at = b.gep(self._pointer(self.program.table.clock), 2 * number, "i64")
        b.store("i64", b.op(f"add i64 {b.load('i64', at, 8)}, {spent}"), at, 8)
        calls = b.gep(at, 1, "i64")
        b.store("i64", b.op(f"add i64 {b.load('i64', calls, 8)}, 1"), calls, 8)

    def _move(self, computation: Computation, instruction: Instruction, move: Move) -> None:
        source = self._slot_of(computation, instruction, move.source)
        target = self._slot_of(computation, instruction, move.target)
        if source is not None and source == target:
            return
        self._copy(
            self._address(computation, instruction, move.source),
            self._address(computation, instruction, move.target),
            move.size,
        )

    def _copy(self, source: str, target: str, size: int) -> None:
        self._b.declare("declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)")
        self._b.emit(f"call void @llvm.memmove.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def _kernel(self, computation: Computation, instruction: Instruction, call: KernelCall) -> None:
        b, use = self._b, call.use
        addresses = [self._address(computation, instruction, buffer) for buffer in use.buffers]
        if isinstance(use.code, KernelCode) and use.code.scratch_bytes:
            sizes = self.program.lowered[(computation.name, instruction.name)].temporaries
            offset = sum(aligned(size) for size in sizes)
            addresses.append(b.gep(self._pointer(self.program.table.scratch), offset))
        if len(addresses) > 64:
            array = b.alloca("ptr", len(addresses), 8)
        else:
            self._array = self._array or b.alloca("ptr", 64, 8)
            array = self._array
        for number, address in enumerate(addresses):
            b.store("ptr", address, b.gep(array, number, "ptr", "at"), 8)
        b.declare(f"declare void @{call.symbol}(ptr, i64, i64)")
        tasks = use.code.tasks if isinstance(use.code, KernelCode) else 1
        if tasks <= 1:
            b.call("void", call.symbol, f"ptr {array}", "i64 0", f"i64 {tasks}")
            return
        b.declare("declare void @xe.parallel_for(ptr, ptr, ptr, i64)")
        pool = self._pointer(self.program.table.pool)
        b.call(
            "void", "xe.parallel_for", f"ptr {pool}", f"ptr @{call.symbol}", f"ptr {array}", f"i64 {tasks}"
        )
