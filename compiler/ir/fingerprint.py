"""Digests of what programs mean: equal for equal programs, whatever their names, locations and order of instructions.

Used to find equal computations (reducers, fusions that recur), to recognise a program that was seen before (caches,
bisection), and to compare a program with what a printer and a parser made of it. An instruction's digest covers its opcode,
type, attributes, called computations and operands, each by its digest; a computation's covers its root and all its
instructions, so that a value computed twice differs from one that is shared, and unused instructions count; a module's covers
its entry, all its computations and attributes.

Digests have 16 bytes (BLAKE2b) and are stable between runs and machines.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from compiler.ir.literal import Literal, canonical
from compiler.ir.order import callees_first
from compiler.ir.program import Computation, Instruction, Module
from compiler.ir.types import FutureType, TensorType, TokenType, TupleType, Type

Digest = bytes
SIZE = 16


class FingerprintCache:
    """Remembers digests by computation object, for one caller and as long as the caller keeps it.

    It holds the computations, so an object's id is never taken up again; digests of called computations are part of the
    key, since an unchanged caller may call a changed callee.
    """

    def __init__(self) -> None:
        self._known: dict[int, tuple[Computation, tuple[Digest, ...], dict[str, Digest], Digest]] = {}

    def _get(
        self, computation: Computation, callees: tuple[Digest, ...]
    ) -> tuple[dict[str, Digest], Digest] | None:
        found = self._known.get(id(computation))
        return (found[2], found[3]) if found is not None and found[1] == callees else None

    def _put(
        self, computation: Computation, callees: tuple[Digest, ...], values: dict[str, Digest], digest: Digest
    ) -> None:
        self._known[id(computation)] = (computation, callees, values, digest)


def fingerprint_module(module: Module, cache: FingerprintCache | None = None) -> Digest:
    """The digest of a whole module; its name does not count."""
    digests = fingerprint_computations(module, cache)
    parts = [digests[module.entry], *sorted(digests.values()), encode(module.attributes)]
    parts += [encode(module.parameter_attributes), encode(module.result_attributes)]
    return _hash(parts)


def fingerprint_computations(module: Module, cache: FingerprintCache | None = None) -> dict[str, Digest]:
    """The digest of every computation by name."""
    digests: dict[str, Digest] = {}
    for name, computation in callees_first(dict(module.computations), module.entry).items():
        digests[name] = fingerprint_values(computation, digests, cache)[1]
    return digests


def fingerprint_values(
    computation: Computation, callees: Mapping[str, Digest], cache: FingerprintCache | None = None
) -> tuple[dict[str, Digest], Digest]:
    """The digest of each instruction of a computation by name, and the computation's own.

    `callees` must hold the digests of all computations that are called from here.

    Raises:
        KeyError: when it does not, or an operand is defined after its user.
    """
    called = tuple(callees[name] for instruction in computation for name in instruction.called)
    known = cache._get(computation, called) if cache is not None else None
    if known is not None:
        return known
    values: dict[str, Digest] = {}
    heads: dict[Any, bytes] = {}
    for instruction in computation.instructions.values():
        head = _head(instruction, heads)
        hasher = hashlib.blake2b(head, digest_size=SIZE)
        for operand in instruction.operands:
            hasher.update(values[operand])
        for callee in instruction.called:
            hasher.update(callees[callee])
        values[instruction.name] = hasher.digest()
    digest = _hash([values[computation.root], *sorted(values.values())])
    if cache is not None:
        cache._put(computation, called, values, digest)
    return values, digest


def _head(instruction: Instruction, heads: dict[Any, bytes]) -> bytes:
    """Opcode, type, attributes and the numbers of operands and callees: what the digest covers besides these."""
    shape = (len(instruction.operands), len(instruction.called))
    key = (instruction.opcode, instruction.type, instruction.attributes, shape)
    found = heads.get(key)
    if found is None:
        counts = struct.pack("<ii", *shape)
        found = b"\0".join(
            (instruction.opcode.encode(), _type(instruction.type), encode(instruction.attributes), counts)
        )
        heads[key] = found
    return found


@lru_cache(maxsize=16384)
def _type(value: Type) -> bytes:
    if isinstance(value, TupleType):
        kind = b"future" if isinstance(value, FutureType) else b""
        return kind + b"(" + b",".join(map(_type, value.elements)) + b")"
    if isinstance(value, TokenType):
        return b"token"
    assert isinstance(value, TensorType)
    layout = f"{{{value.layout.minor_to_major}{value.layout.suffix}}}" if value.layout else ""
    return f"{value}{layout}".encode()


def encode(value: Any) -> bytes:
    """An attribute's value as bytes: equal values of equal kinds alone give equal bytes."""
    if isinstance(value, Literal):
        return b"L" + _literal(value)
    if isinstance(value, Mapping):
        entries = sorted((str(key), encode(entry)) for key, entry in value.items())
        return b"D" + _packed([part for key, entry in entries for part in (key.encode(), entry)])
    if isinstance(value, tuple | list):
        return b"T" + _packed([encode(entry) for entry in value])
    if isinstance(value, bool):
        return b"B1" if value else b"B0"
    if isinstance(value, int):
        return b"I%d" % value
    if isinstance(value, float):
        return b"F" + struct.pack("<d", value)
    if isinstance(value, str):
        return b"S" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, TensorType | TupleType | TokenType):
        return b"Y" + _type(value)
    return b"O" + repr(value).encode()


def _literal(literal: Literal) -> Digest:
    """A digest that does not depend on whether a constant of equal elements is stored as a splat."""
    array = literal.array
    if literal.is_splat or array.size < 2 or array.flat[0].tobytes() != array.flat[-1].tobytes():
        return literal.digest
    return canonical(literal).digest


def _packed(parts: list[bytes]) -> bytes:
    return struct.pack("<i", len(parts)) + b"".join(struct.pack("<i", len(part)) + part for part in parts)


def _hash(parts: list[bytes]) -> Digest:
    return hashlib.blake2b(_packed(parts), digest_size=SIZE).digest()
