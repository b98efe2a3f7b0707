"""The reference interpreter: what a program means, evaluated with NumPy by each operation's own rule.

Stands on top of `ops`; every prefix of the pipeline, every kernel and every backend is held against it. One
`Interpreter` evaluates one module on one virtual device; `evaluate_on_devices` runs a grid of them in threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from compiler.ir.location import source_line
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.semantics import OperationError
from compiler.ir.types import QuantizedType, TensorType, TupleType, Type
from compiler.ops.checks import CHECK_CALLS, CheckFailed
from compiler.ops.record import Array, Devices, Token, Value
from compiler.reference_devices import DeviceGrid, SingleDevice, run_grid
from compiler.reference_plan import Plan, Step, make_plan, widened_plan

OnValue = Callable[[str, Instruction, Sequence[Value], Value], None]
"""Told of each instruction's value: (computation, instruction, operand values, value)."""
CustomCalls = Mapping[str, Callable[..., Value]]
"""Python functions for custom calls by target: (evaluation, *operands) -> value."""


class EvaluationError(Exception):
    """A program cannot be evaluated; one line that names the instruction and the user's line."""


def evaluate(
    module: Module,
    arguments: Sequence[Value],
    *,
    custom_calls: CustomCalls | None = None,
    devices: Devices | None = None,
    on_value: OnValue | None = None,
) -> list[Array]:
    """Runs the entry computation and returns its results, tuples flattened, tokens left out.

    `arguments` are the parameters' values, or their leaves flattened in order.

    Raises:
        EvaluationError: when arguments do not fit or an instruction has no value.
        CheckFailed: when a `check` operation finds a difference.
    """
    interpreter = Interpreter(module, custom_calls=custom_calls, devices=devices, on_value=on_value)
    return flatten(interpreter.run_entry(arguments))


def evaluate_computation(
    module: Module,
    computation: str,
    arguments: Sequence[Value],
    *,
    custom_calls: CustomCalls | None = None,
    devices: Devices | None = None,
    on_value: OnValue | None = None,
) -> Value:
    """Runs one computation of a module on the values of its parameters. Raises EvaluationError, CheckFailed."""
    interpreter = Interpreter(module, custom_calls=custom_calls, devices=devices, on_value=on_value)
    return interpreter.run(computation, tuple(arguments))


def evaluate_on_devices(
    module: Module,
    arguments: Sequence[Sequence[Value]],
    *,
    num_replicas: int = 1,
    num_partitions: int = 1,
    custom_calls: CustomCalls | None = None,
    timeout_seconds: float = 60.0,
) -> list[list[Array]]:
    """Runs the entry on every process of a grid at once, replica-major, each with its own arguments.

    Raises:
        EvaluationError: when any process fails, or all of them wait for each other.
    """
    grid = DeviceGrid(num_replicas, num_partitions, timeout_seconds)

    def process(own: Sequence[Value]) -> Callable[[Devices], list[Array]]:
        return lambda device: evaluate(module, own, custom_calls=custom_calls, devices=device)

    return run_grid(grid, [process(own) for own in arguments])


def flatten(value: Value) -> list[Array]:
    """The arrays of a value in order; tokens are left out."""
    if isinstance(value, tuple):
        return [leaf for entry in value for leaf in flatten(entry)]
    return [] if isinstance(value, Token) else [value]


class Evaluation:
    """One instruction as its rule sees it; implements `compiler.ops.record.Evaluation`."""

    __slots__ = ("_interpreter", "attributes", "called", "opcode", "operand_types", "result")

    def __init__(self, interpreter: Interpreter, computation: Computation, instruction: Instruction) -> None:
        self._interpreter = interpreter
        self.opcode = instruction.opcode
        self.attributes = instruction.attributes
        self.result = instruction.type
        self.operand_types = tuple(computation[name].type for name in instruction.operands)
        self.called = tuple(interpreter.module.computations[name] for name in instruction.called)

    @property
    def devices(self) -> Devices:
        """The virtual devices."""
        return self._interpreter.devices

    def call(self, index: int, *arguments: Value) -> Value:
        """Runs the index-th called computation on values."""
        return self._interpreter.run(self.called[index].name, arguments)

    def call_elementwise(self, index: int, *arguments: Array) -> Value | None:
        """Runs a scalar computation on whole arrays at once, or gives None when it cannot be widened so."""
        return self._interpreter.run_widened(self.called[index], arguments)

    def custom_call(self, target: str) -> Callable[..., Value] | None:
        """The function registered for a custom call."""
        return self._interpreter.custom_calls.get(target)

    def module_attribute(self, name: str) -> Any:
        """An attribute of the module, None when it has no such."""
        return self._interpreter.module.attributes.get(name)

    def run_on_partitions(self, index: int, arguments: Sequence[Sequence[Value]]) -> list[Value]:
        """Runs a called computation as the processes of 1 × n partitions, each with its own arguments."""
        return self._interpreter.run_on_partitions(self.called[index].name, arguments)

    def run_parallel(
        self, programs: Sequence[Sequence[str]], operands: Sequence[Value], infeed: Sequence[str]
    ) -> list[Value]:
        """Runs named computations as the processes of a grid of replicas × partitions (`interpreter.run_parallel`).

        Each takes as many of the operands as it has parameters, in order; the results are joined in order.
        """
        return self._interpreter.run_parallel(programs, operands, infeed)


class Interpreter:
    """Evaluates one module on one virtual device. Not shared between threads."""

    def __init__(
        self,
        module: Module,
        *,
        custom_calls: CustomCalls | None = None,
        devices: Devices | None = None,
        on_value: OnValue | None = None,
    ) -> None:
        self.module = module
        self.custom_calls = {**CHECK_CALLS, **(custom_calls or {})}
        self.devices: Devices = devices or SingleDevice()
        self._on_value = on_value
        self._plans: dict[str, Plan] = {}
        self._widened: dict[str, Plan | None] = {}

    def run_entry(self, arguments: Sequence[Value]) -> Value:
        """Runs the entry computation on its parameters' values or their flattened leaves."""
        entry = self.module.entry_computation
        return self.run(entry.name, _fit(entry, list(arguments)))

    def run(self, computation: str, arguments: Sequence[Value]) -> Value:
        """Runs one computation, those that it calls plainly on an explicit stack, loops and branches by their rules."""
        with np.errstate(all="ignore"):
            return self._run([_Frame(self._plan(computation), arguments)])

    def _run(self, stack: list[_Frame]) -> Value:
        while True:
            frame = stack[-1]
            callee = self._advance(frame)
            if callee is not None:
                stack.append(callee)
                continue
            stack.pop()
            value = frame.values[frame.plan.root]
            if not stack:
                return value
            caller = stack[-1]
            self._finish(caller, caller.plan.steps[caller.position], value)
            caller.position += 1

    def _advance(self, frame: _Frame) -> _Frame | None:
        """Evaluates until the computation ends (None) or calls another one (its frame)."""
        steps, values = frame.plan.steps, frame.values
        while frame.position < len(steps):
            step = steps[frame.position]
            operands = [values[name] for name in step.operands]
            if step.is_call:
                return _Frame(self._plan(step.instruction.called[0]), operands)
            self._finish(frame, step, self._evaluate(step, operands))
            frame.position += 1
        return None

    def _finish(self, frame: _Frame, step: Step, value: Value) -> None:
        if self._on_value is not None:
            operands = [frame.values[name] for name in step.operands]
            self._on_value(frame.plan.computation.name, step.instruction, operands, value)
        frame.values[step.instruction.name] = value
        for name in step.dead:
            del frame.values[name]

    def _evaluate(self, step: Step, operands: list[Value]) -> Value:
        try:
            return step.evaluate(step.evaluation, *operands)
        except EvaluationError:
            raise
        except CheckFailed as failure:
            raise failure.at(_place(step.instruction)) from None
        except RecursionError:
            raise EvaluationError(
                f"{_place(step.instruction)}: loops and branches are nested too deeply"
            ) from None
        except MemoryError as error:
            raise EvaluationError(f"{_place(step.instruction)}: out of memory: {error}") from None
        except OperationError as error:
            raise EvaluationError(f"{_place(step.instruction)}: {error}") from None
        except (ValueError, TypeError, IndexError, KeyError, ArithmeticError, AssertionError) as error:
            message = f"{_place(step.instruction)}: {type(error).__name__}: {error}"
            raise EvaluationError(message) from error

    def _plan(self, name: str) -> Plan:
        plan = self._plans.get(name)
        if plan is None:
            computation = self.module.computations[name]
            try:
                plan = make_plan(computation, lambda i: Evaluation(self, computation, i))
            except OperationError as error:
                raise EvaluationError(f"{name}: {error}") from None
            self._plans[name] = plan
        return plan

    def run_widened(self, computation: Computation, arguments: Sequence[Value]) -> Value | None:
        """See `Evaluation.call_elementwise`."""
        name = computation.name
        if name not in self._widened:
            self._widened[name] = widened_plan(self.module, computation, lambda c, i: Evaluation(self, c, i))
        plan = self._widened[name]
        if plan is None:
            return None
        frame = _Frame(plan, arguments)
        for step in plan.steps:
            operands = [frame.values[operand] for operand in step.operands]
            if step.is_call:
                callee = self.module.computations[step.instruction.called[0]]
                value = self.run_widened(callee, operands)
                assert value is not None
            else:
                value = self._evaluate(step, operands)
            frame.values[step.instruction.name] = value
        shape = np.broadcast_shapes(*(entry.shape for entry in flatten(tuple(arguments))))
        return _spread(frame.values[plan.root], shape)

    def run_parallel(
        self, programs: Sequence[Sequence[str]], operands: Sequence[Value], infeed: Sequence[str]
    ) -> list[Value]:
        """See `Evaluation.run_parallel`."""
        grid = DeviceGrid(len(programs), len(programs[0]) if programs else 1)
        grid.infeed.extend(self.run(name, ()) for name in infeed)
        left = list(operands)
        bodies = []
        for name in [name for row in programs for name in row]:
            count = len(self.module.computations[name].parameters)
            bodies.append(self._process(name, left[:count]))
            left = left[count:]
        results: list[Value] = []
        for value in run_grid(grid, bodies):
            results += list(value) if isinstance(value, tuple) else [value]
        return results

    def run_on_partitions(self, computation: str, arguments: Sequence[Sequence[Value]]) -> list[Value]:
        """See `Evaluation.run_on_partitions`."""
        grid = DeviceGrid(1, len(arguments))
        return run_grid(grid, [self._process(computation, own) for own in arguments])

    def _process(self, computation: str, arguments: Sequence[Value]) -> Callable[[Devices], Value]:
        def run(devices: Devices) -> Value:
            other = Interpreter(
                self.module, custom_calls=self.custom_calls, devices=devices, on_value=self._on_value
            )
            return other.run(computation, arguments)

        return run


class _Frame:
    """One activation of a computation."""

    __slots__ = ("plan", "position", "values")

    def __init__(self, plan: Plan, arguments: Sequence[Value]) -> None:
        parameters = plan.computation.parameters
        if len(parameters) != len(arguments):
            name = plan.computation.name
            raise EvaluationError(f"{name} takes {len(parameters)} arguments, not {len(arguments)}")
        self.plan = plan
        self.position = 0
        self.values: dict[str, Value] = dict(zip(parameters, arguments, strict=True))


def _place(instruction: Instruction) -> str:
    line = source_line(instruction.location)
    where = f"{line}: " if line else ""
    return f"{where}{instruction.name} ({instruction.opcode})"


def _spread(value: Value, shape: tuple[int, ...]) -> Value:
    if isinstance(value, tuple):
        return tuple(_spread(entry, shape) for entry in value)
    assert isinstance(value, np.ndarray)
    return value if value.shape == shape else np.broadcast_to(value, shape)


def _fit(entry: Computation, arguments: list[Value]) -> list[Value]:
    """Arguments as the entry's parameters; leaves are gathered into tuples where it takes tuples."""
    types = entry.parameter_types
    if len(arguments) != len(types) or any(
        isinstance(kind, TupleType) != isinstance(value, tuple)
        for kind, value in zip(types, arguments, strict=True)
    ):
        leaves = iter(arguments)
        try:
            arguments = [_gather(kind, leaves) for kind in types]
        except StopIteration:
            raise EvaluationError(
                f"{entry.name} takes more arguments than the {len(arguments)} given"
            ) from None
        if next(leaves, None) is not None:
            raise EvaluationError(f"{entry.name} takes fewer arguments than were given")
    return [
        _checked(index, kind, value) for index, (kind, value) in enumerate(zip(types, arguments, strict=True))
    ]


def _gather(kind: Type, leaves: Any) -> Value:
    if isinstance(kind, TupleType):
        return tuple(_gather(entry, leaves) for entry in kind.elements)
    if isinstance(kind, TensorType):
        value: Value = next(leaves)
        return value
    return Token()


def _checked(index: int, kind: Type, value: Value) -> Value:
    if not isinstance(kind, TensorType):
        return value
    array = np.asarray(value)
    stored = kind.element.storage if isinstance(kind.element, QuantizedType) else kind.element
    fits = array.ndim == kind.rank and all(w in (-1, g) for w, g in zip(kind.shape, array.shape, strict=True))
    if array.dtype != stored.dtype or not fits:
        shape = "x".join(map(str, array.shape)) or "scalar"
        raise EvaluationError(f"argument #{index} must be {kind}, but is {shape} of {array.dtype}")
    return array
