"""Finds backends: built in, through the entry-point group `xla_explore.backends`, or from a plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points

from compiler.backends.base import Backend, BackendError

GROUP = "xla_explore.backends"
BUILT_IN = {
    "cpu": "compiler.backends.cpu.backend:CpuBackend",
    "interpreter": "compiler.backends.interpreter.backend:InterpreterBackend",
}
"""Known without an installation, so that a source checkout works; entry points add to and override them."""


def backend_names(plugins: Mapping[str, Callable[[], Backend]] | None = None) -> list[str]:
    """Names of all backends that could be asked for, available here or not."""
    found = {entry.name for entry in entry_points(group=GROUP)}
    return sorted(found | set(BUILT_IN) | set(plugins or {}))


def find_backend(name: str, plugins: Mapping[str, Callable[[], Backend]] | None = None) -> Backend:
    """Makes the backend of a name.

    Raises:
        BackendError: when there is none of that name, it does not load, or it cannot run here (with the reason).
    """
    backend = _make(name, plugins or {})
    availability = backend.availability()
    if not availability.ok:
        raise BackendError(f"backend {name} is not available: {availability.reason}")
    return backend


def _make(name: str, plugins: Mapping[str, Callable[[], Backend]]) -> Backend:
    if name in plugins:
        return plugins[name]()
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        made: Backend = getattr(import_module(module), attribute)()
        return made
    for entry in entry_points(group=GROUP):
        if entry.name == name:
            try:
                loaded: Backend = entry.load()()
            except Exception as error:
                raise BackendError(f"backend {name} does not load: {error}") from error
            return loaded
    raise BackendError(f"there is no backend {name!r}; there are {', '.join(backend_names(plugins))}")
