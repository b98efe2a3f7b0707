"""One compile from a module to an executable.

Puts together what the other parts offer: plugins, the backend, the pipeline with the backend's and the plugins' stages
in it, options, overrides, the pass manager, and code generation. The explorer observes it through `Observer`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from compiler.analysis.plan import BufferPlan
from compiler.backends.base import Backend, BackendError, CompileRequest, Executable
from compiler.backends.registry import find_backend
from compiler.decisions.log import Decider
from compiler.ir.program import Module
from compiler.ops.record import Devices
from compiler.options import CompileOptions, typed_options
from compiler.pass_manager import Observer, PassManager, Silent, new_gate_and_decider
from compiler.passes.base import PassContext
from compiler.plugins import Registry, load_plugins
from compiler.virtual_devices import GridExecutable, grid_of


@dataclass
class Optimised:
    """A module after all HLO stages, with what code generation needs."""

    source: Module
    module: Module
    plan: BufferPlan | None
    decider: Decider
    backend: Backend
    registry: Registry
    options: CompileOptions
    context: PassContext

    def unmatched_overrides(self) -> list[str]:
        """Overrides that no decision asked for."""
        return self.decider.unmatched


@dataclass
class Compilation:
    """A module compiled and loaded."""

    optimised: Optimised
    executable: Executable
    seconds: float

    @property
    def module(self) -> Module:
        """The module that the code was made from."""
        return self.optimised.module


def optimise(
    module: Module,
    options: CompileOptions | None = None,
    observer: Observer | None = None,
    *,
    registry: Registry | None = None,
    check_cancelled: Callable[[], None] = lambda: None,
) -> Optimised:
    """Runs the HLO stages for the backend named in the options.

    Raises:
        BackendError: the backend does not exist or cannot run here.
        PluginError, OptionError, IllegalOverride: the user's input is wrong.
        StageFailure: a pass failed or left an invalid program.
    """
    from compiler.ir.verifier import verify
    from compiler.ops import SEMANTICS
    from compiler.pipeline import build_stages, pipeline_options

    chosen = options or CompileOptions()
    plugins = registry or load_plugins(chosen.plugins)
    backend = find_backend(chosen.backend, plugins.backends)
    stages = build_stages(backend, plugins.insertions)
    gate, decider = new_gate_and_decider(chosen.restraint, dict(chosen.overrides))
    context = PassContext(
        decider,
        backend.capabilities(),
        typed_options(chosen.values, pipeline_options(stages)),
        chosen.fp_fast,
        check_cancelled=check_cancelled,
    )
    watcher = observer or Silent()
    manager = PassManager(
        SEMANTICS,
        stages,
        watcher,
        chosen.restraint,
        verify if chosen.verify_each else None,
        chosen.keep_rewrites,
    )
    watcher.compile_started(module, stages)
    final = manager.run(module, context, gate)
    plan = context.results.get("buffer_plan")
    return Optimised(module, final, plan, decider, backend, plugins, chosen, context)


def generate(optimised: Optimised) -> Compilation:
    """Makes code from an optimised module and loads it.

    Raises:
        BackendError: the backend cannot compile something in it, or there is no memory plan.
    """
    if optimised.plan is None:
        raise BackendError(
            "the pipeline ended before buffer assignment; there is no memory plan to make code for"
        )
    started = time.perf_counter()
    plan = optimised.plan

    def make(devices: Devices | None) -> Executable:
        request = CompileRequest(
            optimised.module,
            plan,
            optimised.decider,
            dict(optimised.context.options),
            optimised.options.fp_fast,
            optimised.options.threads,
            optimised.registry.custom_calls,
            devices,
        )
        return optimised.backend.compile(request)

    grid = grid_of(optimised.module)
    executable = make(None) if grid == (1, 1) else GridExecutable(grid, make)
    return Compilation(optimised, executable, time.perf_counter() - started)


def compile_module(
    module: Module,
    options: CompileOptions | None = None,
    observer: Observer | None = None,
    *,
    registry: Registry | None = None,
) -> Compilation:
    """`optimise` and `generate` in one."""
    return generate(optimise(module, options, observer, registry=registry))
