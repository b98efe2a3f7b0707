"""The scheme that most pretty forms follow: `op operands, key = value, … {attributes} : types`.

`KEYS` is what parser and printer share: what each key of an operation's form is called among its attributes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compiler.frontend.mlir.lexer import unquote
from compiler.frontend.mlir.tree import Operation
from compiler.ir.program import Attributes
from compiler.ir.types import ELEMENTS, ElementType, TensorType, Type

if TYPE_CHECKING:
    from compiler.frontend.mlir.reader import Reader

KEYS: dict[str, dict[str, str]] = {
    "stablehlo.broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.dynamic_broadcast_in_dim": {"dims": "broadcast_dimensions"},
    "stablehlo.broadcast": {"sizes": "broadcast_sizes"},
    "stablehlo.einsum": {"config": "einsum_config"},
    "stablehlo.unary_einsum": {"config": "einsum_config"},
    "stablehlo.transpose": {"dims": "permutation"},
    "stablehlo.reverse": {"dims": "dimensions"},
    "stablehlo.concatenate": {"dim": "dimension"},
    "stablehlo.iota": {"dim": "iota_dimension"},
    "stablehlo.dynamic_iota": {"dim": "iota_dimension"},
    "stablehlo.get_dimension_size": {"dim": "dimension"},
    "stablehlo.set_dimension_size": {"dim": "dimension"},
    "stablehlo.pad": {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"},
    "stablehlo.dynamic_slice": {"sizes": "slice_sizes"},
    "stablehlo.reduce_precision": {"format": "format"},
    "stablehlo.fft": {"type": "fft_type", "length": "fft_length"},
    "stablehlo.rng": {"distribution": "rng_distribution"},
    "stablehlo.rng_bit_generator": {"algorithm": "rng_algorithm"},
    "stablehlo.dot_general": {
        "batching_dims": "batching_dims",
        "contracting_dims": "contracting_dims",
        "precision": "precision_config",
        "algorithm": "algorithm",
    },
    "stablehlo.dot": {"precision": "precision_config"},
    "chlo.constant_like": {"value": "value"},
}
"""What each key of a pretty form is called in the operation's attributes."""


def default_pretty(r: Reader, op: Operation) -> None:
    """`op %a, %b, key = value {attributes} : types`; words among the operands are positional attributes."""
    while r.tokens[r.at] not in (":", "{", ""):
        token = r.tokens[r.at]
        if token[0] == "%":
            op.operands.append(r.take())
        elif token.startswith("dense<"):
            op.attributes["value"] = r.attribute()
        elif r.tokens[r.at + 1] == "=":
            name = KEYS.get(op.name, {}).get(token, token)
            r.at += 2
            if key_takes_list(name) and r.tokens[r.at][:1] not in "[#":
                r.fail(f"expected '[' after {token} =")
            op.attributes[name] = _key_value(r)
        else:
            r.fail(f"unexpected '{token[:40]}' in {op.name}")
        if not r.accept(","):
            break
        if r.tokens[r.at] in (":", "{"):
            r.fail(f"unexpected '{r.tokens[r.at]}' after a comma in {op.name}")
    r.attribute_dictionary(op)
    if op.name.startswith("check.") and r.tokens[r.at] != ":":
        op.operand_types = op.operand_types or [UNKNOWN] * len(op.operands)
        return
    signature(r, op)


_LISTS = frozenset({"batching_dims", "contracting_dims", "precision_config", "permutation", "fft_length"})


def key_takes_list(name: str) -> bool:
    """True for keys of pretty forms whose value is a list."""
    return name in _LISTS or name.endswith(("dimensions", "_sizes"))


def _key_value(r: Reader) -> Any:
    """A value; `[1] x [0]` gives a pair; `<…>` is taken as text."""
    if r.tokens[r.at] == "<":
        r.at += 1
        return Attributes(r.record())
    if r.tokens[r.at].lstrip("-")[:1].isdigit():
        return r.bare_number()
    if r.tokens[r.at][:1] == '"':
        return unquote(r.take())
    if r.tokens[r.at] in ("true", "false"):
        return r.take() == "true"
    first = r.attribute()
    if r.tokens[r.at] == "x" and isinstance(first, tuple):
        r.at += 1
        return first, r.attribute()
    return first


def signature(r: Reader, op: Operation) -> None:
    """`: (types) -> types`, `: types -> types`, or `: types` where results have the operands' types."""
    if not r.accept(":"):
        if op.operands:
            r.fail("expected ':' and the types")
        return
    if r.tokens[r.at] == "(":
        r.function_type(op)
    else:
        types = [r.type()]
        while r.accept(","):
            types.append(r.type())
        op.operand_types = types
        if r.accept("->"):
            op.result_types = r.types_or_one()
        else:
            if op.name == "stablehlo.select" and len(types) != 2:
                r.fail(f"{op.name} takes a function type or the types of predicate and result", op.offset)
            _spread(op)
    if len(op.operand_types) != len(op.operands):
        r.fail(
            f"{op.name} has {len(op.operands)} operands, but its type lists {len(op.operand_types)}",
            op.offset,
        )


def _spread(op: Operation) -> None:
    """The short forms: one type for everything, or what the operation's own rule makes of the list."""
    types = op.operand_types
    if op.name == "stablehlo.select":
        op.operand_types = [types[0], types[-1], types[-1]] if len(types) == 2 else types
        op.result_types = [types[-1]]
    elif op.name in ("stablehlo.optimization_barrier", "sdy.sharding_constraint"):
        op.result_types = list(types)
    elif op.name in NO_RESULTS or op.name.startswith("check."):
        op.operand_types = types * len(op.operands) if len(types) == 1 else types
        op.result_types = []
    elif op.name in TOKEN_RESULT or not op.operands:
        op.operand_types = [types[0]] * len(op.operands)
        op.result_types = [types[-1]]
    elif len(types) == 1:
        op.operand_types = [_part(op, types[0])] * len(op.operands)
        op.result_types = types
    else:
        op.result_types = [types[-1]]


UNKNOWN = TensorType(ELEMENTS["i1"], ())
"""Stands for the type of an operand that a check does not write; the importer knows the operand's own."""


NO_RESULTS = frozenset({"stablehlo.return", "func.return", "return", "sdy.return"})


TOKEN_RESULT = frozenset({"stablehlo.after_all", "stablehlo.create_token"})


def _part(op: Operation, kind: Type) -> Type:
    """The operands' type where only one is written: the result's, or its parts' for `complex`."""
    if (
        op.name == "stablehlo.complex"
        and isinstance(kind, TensorType)
        and isinstance(kind.element, ElementType)
    ):
        return kind.with_element(kind.element.real)
    return kind
