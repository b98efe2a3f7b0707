"""Fusion decisions: what computing a producer inside its consumer saves and costs.

The model is a roofline with a fixed price for starting a kernel: a kept-apart producer writes its result to memory and
its consumer reads it back; a fused one is computed again for every element the consumer asks for more than once.
Constants are of the order measured on current server cores; only their ratios matter to the verdicts.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.decisions.log import Choice, Kind

FUSION = Kind("fusion", "Compute a producer inside its consumer", "keep-apart")

FUSE, KEEP_APART = "fuse", "keep-apart"


@dataclass(frozen=True, slots=True)
class Machine:
    """Prices. Bandwidths in bytes a nanosecond, times in nanoseconds."""

    memory_bytes_per_ns: float = 12.0
    cache_bytes_per_ns: float = 60.0
    flop_ns: float = 0.03
    """One vectorised arithmetic operation on one element."""
    transcendental_ns: float = 0.6
    kernel_ns: float = 300.0
    """Starting a kernel."""
    strided_ns: float = 1.5
    """Extra for one element read across rows instead of along them."""
    cache_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class EdgeCost:
    """One edge as the model sees it. Sizes in bytes, counts in elements or operations."""

    producer_bytes: int
    producer_elements: int
    evaluations: float
    """How many elements of the producer the consumer asks for, repeats counted."""
    flops: float
    """Arithmetic of one producer element, its own fused producers included."""
    transcendentals: float
    strided: bool = False
    """Fused, the producer's own operands would be read across rows."""


def prices(edge: EdgeCost, machine: Machine) -> tuple[float, float]:
    """Estimated nanoseconds that the edge costs when fused, and when kept apart."""
    per_element = edge.flops * machine.flop_ns + edge.transcendentals * machine.transcendental_ns
    repeats = max(edge.evaluations - edge.producer_elements, 0.0)
    fused = repeats * per_element
    if edge.strided:
        fused += edge.evaluations * machine.strided_ns
    in_cache = edge.producer_bytes <= machine.cache_bytes
    rate = machine.cache_bytes_per_ns if in_cache else machine.memory_bytes_per_ns
    apart = machine.kernel_ns + 2.0 * edge.producer_bytes / rate
    return fused, apart


def choices(edge: EdgeCost, machine: Machine, forbidden: str = "") -> tuple[list[Choice], str, str]:
    """The two choices with their estimates, the policy's verdict, and the reason in words."""
    fused, apart = prices(edge, machine)
    options = [Choice(FUSE, round(fused, 1), "ns", forbidden), Choice(KEEP_APART, round(apart, 1), "ns")]
    if forbidden:
        return options, KEEP_APART, forbidden
    if fused <= apart:
        saved = f"saves a round trip of {edge.producer_bytes:,} bytes"
        again = edge.evaluations / max(edge.producer_elements, 1)
        return (
            options,
            FUSE,
            saved if again <= 1.0 else f"{saved} for computing each element {again:.3g} times",
        )
    again = edge.evaluations / max(edge.producer_elements, 1)
    why = (
        f"each element would be computed {again:.3g} times"
        if again > 1
        else "its operands would be read across rows"
    )
    return options, KEEP_APART, f"{why}, which costs more than a round trip of {edge.producer_bytes:,} bytes"
