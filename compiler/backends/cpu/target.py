"""The processor that code is made for: what it can do and how its memory is built.

The emitters ask a `Target`; nobody else looks at the machine. A target is a value, so tests and
cross-compilation make their own instead of detecting one.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

_CACHE_DIRECTORY = Path("/sys/devices/system/cpu/cpu0/cache")
_DEFAULT_L1 = 32 << 10
_DEFAULT_L2 = 512 << 10


@dataclass(frozen=True, slots=True)
class Target:
    """A processor.

    Attributes:
        triple: LLVM's target triple.
        cpu: LLVM's name of the processor (``znver4``).
        features: LLVM's feature string (``+avx2,-avx512f,…``).
        vector_bits: width of the vectors that code is written for.
        vector_registers: how many of those a function may use.
        has_fma: whether a multiply-add of vectors is one instruction.
        has_masked_memory: whether vector loads and stores can leave lanes out without a branch for each.
        l1_bytes: size of the first-level data cache of one core.
        l2_bytes: size of the second-level cache.
        cores: how many cores this process may use.
    """

    triple: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    has_fma: bool
    has_masked_memory: bool
    l1_bytes: int = _DEFAULT_L1
    l2_bytes: int = _DEFAULT_L2
    cores: int = 1

    def lanes(self, element_bits: int) -> int:
        """How many elements of `element_bits` bits a vector holds (at least one)."""
        return max(1, self.vector_bits // max(element_bits, 8))

    @property
    def architecture(self) -> str:
        """``x86_64``, ``aarch64``…: the first part of the triple, in one spelling."""
        name = self.triple.split("-", 1)[0]
        return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)

    @property
    def is_linux(self) -> bool:
        """Whether the triple names Linux, and with it the futex system call."""
        return "linux" in self.triple


def from_features(triple: str, cpu: str, features: dict[str, bool], **sizes: int) -> Target:
    """A target from LLVM's view of a processor: its triple, its name and its features."""
    architecture = triple.split("-", 1)[0]
    bits, registers, fma, masked = 128, 16, False, False
    if architecture in ("x86_64", "amd64", "i686"):
        if features.get("avx512f") and features.get("avx512vl") and features.get("avx512bw"):
            bits, registers, masked = 512, 32, True
        elif features.get("avx2"):
            bits, masked = 256, True
        fma = bool(features.get("fma")) or bits == 512
    elif architecture in ("aarch64", "arm64"):
        registers, fma = 32, True
    flat = ",".join(f"{'+' if enabled else '-'}{name}" for name, enabled in sorted(features.items()))
    return Target(triple, cpu, flat, bits, registers, fma, masked, **sizes)


def detect() -> Target:
    """The processor this process runs on."""
    return from_features(
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        _host_features(),
        l1_bytes=_cache_bytes(1, _DEFAULT_L1),
        l2_bytes=_cache_bytes(2, _DEFAULT_L2),
        cores=_usable_cores(),
    )


def _host_features() -> dict[str, bool]:
    try:
        return dict(llvm.get_host_cpu_features())
    except RuntimeError:
        # LLVM cannot ask every processor; the baseline of the architecture always works.
        return {"neon": True} if platform.machine() in ("aarch64", "arm64") else {}


def _cache_bytes(level: int, default: int) -> int:
    for entry in sorted(_CACHE_DIRECTORY.glob("index*")):
        try:
            if (
                int((entry / "level").read_text()) != level
                or (entry / "type").read_text().strip() == "Instruction"
            ):
                continue
            return _parse_size((entry / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return default


def _parse_size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(text[:-1]) * units[text[-1]] if text[-1:] in units else int(text)


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1
