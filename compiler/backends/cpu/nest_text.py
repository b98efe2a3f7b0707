"""A kernel's loops as people read them."""

from __future__ import annotations

from compiler.backends.cpu.kernel_code import KernelCode
from compiler.backends.cpu.program import KernelCall, Program
from compiler.kernel.loop_text import loops_text


def nest_text(call: KernelCall, program: Program) -> str:
    """The loops of a kernel; for those with a schedule of their own, what they compute and how they are cut up."""
    instruction = program.module.computations[call.computation][call.instruction]
    code = call.use.code
    tasks = code.tasks if isinstance(code, KernelCode) else 1
    head = f"// {call.instruction}: {call.use.kind}, {tasks} task{'s' if tasks != 1 else ''}\n"
    if call.use.nest is not None:
        operands = [f"{name}" for name in instruction.operands]
        return head + loops_text(call.use.nest, operands)
    return head + f"{call.instruction} = {instruction.opcode}({', '.join(instruction.operands)})\n"
