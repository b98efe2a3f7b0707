"""From LLVM IR text to machine code in this process.

Emitters write modules as text, already vectorised; this module parses, cleans up with a few passes,
generates object code (or takes it from the cache on disk) and loads it. `ModuleCompiler` turns texts into
objects, `Library` holds loaded ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

import llvmlite
import llvmlite.binding as llvm

from compiler.backends.cpu.object_cache import ObjectCache
from compiler.backends.cpu.target import Target

_PIPELINE_VERSION = "1"
_ERROR_POSITION = re.compile(r":(\d+):(\d+): error: (.*)")

Level = Literal["light", "full"]


class CodeGenerationError(Exception):
    """LLVM refused what an emitter wrote: a fault of this compiler, never of its user."""


def _numbered(text: str, message: str) -> str:
    found = _ERROR_POSITION.search(message)
    if found is None:
        return message.strip()
    line = int(found.group(1))
    lines = text.splitlines()
    shown = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return f"LLVM IR line {line}: {found.group(3)}: {shown}"


class ModuleCompiler:
    """Compiles modules for one target.

    Args:
        target: the processor.
        cache: where object code is kept between runs; None to keep none.
        codegen_level: LLVM's code generation level, 0 to 3.
    """

    def __init__(self, target: Target, cache: ObjectCache | None = None, codegen_level: int = 2) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.target = target
        self.cache = cache
        self.codegen_level = codegen_level
        self._machine = self._new_machine()

    def _new_machine(self) -> llvm.TargetMachine:
        return llvm.Target.from_triple(self.target.triple).create_target_machine(
            cpu=self.target.cpu,
            features=self.target.features,
            opt=self.codegen_level,
            reloc="pic",
            codemodel="small",
        )

    def key(self, text: str, level: Level) -> str:
        """The cache key of `text` compiled at `level`: all that the object code depends on."""
        target = self.target
        versions = (_PIPELINE_VERSION, llvmlite.__version__, ".".join(map(str, llvm.llvm_version_info)))
        return ObjectCache.key(
            (text, level, str(self.codegen_level), target.triple, target.cpu, target.features, *versions)
        )

    def object_code(self, text: str, level: Level = "light") -> bytes:
        """The object file of a module.

        Raises:
            CodeGenerationError: LLVM did not accept the text; the message shows the line.
        """
        key = ""
        if self.cache is not None:
            key = self.key(text, level)
            found = self.cache.get(key)
            if found is not None:
                return found
        contents: bytes = self._machine.emit_object(self._optimised(text, level))
        if self.cache is not None:
            self.cache.put(key, contents)
        return contents

    def optimised_text(self, text: str, level: Level = "light") -> str:
        """The module after LLVM's passes, as IR text."""
        return str(self._optimised(text, level))

    def assembly(self, text: str, level: Level = "light") -> str:
        """The machine code of the module, as assembly text."""
        contents: str = self._machine.emit_assembly(self._optimised(text, level))
        return contents

    def load(self, text: str, level: Level = "light", imports: Mapping[str, int] | None = None) -> Library:
        """Compiles one module and loads it."""
        return self.link([self.object_code(text, level)], imports)

    def link(self, objects: Sequence[bytes], imports: Mapping[str, int] | None = None) -> Library:
        """Loads object files as one library; `imports` gives the addresses of symbols defined elsewhere."""
        return Library(self._new_machine(), self.target, objects, imports or {})

    def _optimised(self, text: str, level: Level) -> llvm.ModuleRef:
        try:
            module = llvm.parse_assembly(text, llvm.create_context())
            module.verify()
        except RuntimeError as error:
            raise CodeGenerationError(_numbered(text, str(error))) from error
        module.triple = self.target.triple
        module.data_layout = str(self._machine.target_data)
        options = llvm.create_pipeline_tuning_options(speed_level=3 if level == "full" else 1)
        options.loop_vectorization = options.slp_vectorization = level == "full"
        builder = llvm.create_pass_builder(self._machine, options)
        if level == "full":
            passes = builder.getModulePassManager()
        else:
            passes = llvm.create_new_module_pass_manager()
            # The texts come vectorised and mostly optimised: promote stack slots, fold, tidy up. Anything
            # more costs several times this and gains nothing that was measurable.
            passes.add_always_inliner_pass()
            passes.add_sroa_pass()
            passes.add_instruction_combine_pass()
            passes.add_simplify_cfg_pass()
            passes.add_global_dead_code_eliminate_pass()
        passes.run(module, builder)
        return module


class Library:
    """Machine code loaded in this process; it stays there as long as this object lives."""

    def __init__(
        self,
        machine: llvm.TargetMachine,
        target: Target,
        objects: Sequence[bytes],
        imports: Mapping[str, int],
    ) -> None:
        self._engine = llvm.create_lljit_compiler(
            machine, use_jit_link=target.architecture == "aarch64", suppress_errors=True
        )
        builder = llvm.JITLibraryBuilder().add_current_process()
        for contents in objects:
            builder.add_object_img(contents)
        for name, address in imports.items():
            builder.import_symbol(name, address)
        try:
            self._tracker = builder.link(self._engine, "kernels")
        except RuntimeError as error:
            raise CodeGenerationError(f"the object code does not load: {error}") from error
        self._addresses: dict[str, int] = {}
        self._held = [self._tracker]

    def address(self, name: str) -> int:
        """The address of an external function or variable.

        Raises:
            CodeGenerationError: there is none of that name, or it needs a symbol that nothing defines.
        """
        known = self._addresses.get(name)
        if known is None:
            try:
                found = self._engine.lookup("kernels", name)
            except RuntimeError as error:
                raise CodeGenerationError(f"symbol @{name} cannot be loaded: {str(error).strip()}") from error
            self._held.append(found)
            known = self._addresses[name] = int(found[name])
        return known
