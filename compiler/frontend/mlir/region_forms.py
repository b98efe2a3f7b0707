"""Pretty forms of what has regions: modules, functions, loops, reductions, and their terminators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.frontend.mlir.pretty_forms import signature
from compiler.frontend.mlir.tree import Block, Operation, Raw, Word

if TYPE_CHECKING:
    from compiler.frontend.mlir.reader import Reader


def reduce(r: Reader, op: Operation) -> None:
    """`reduce(%a init: %b), … applies op across dimensions = […]` or with a `reducer` region."""
    inputs, inits = [], []
    while r.accept("("):
        inputs.append(r.value())
        r.expect("init")
        r.expect(":")
        inits.append(r.value())
        r.expect(")")
        r.accept(",")
    op.operands = inputs + inits
    applied = r.take() if r.accept("applies") else ""
    if r.accept("across"):
        r.expect("dimensions")
        r.expect("=")
        op.attributes["dimensions"] = r.attribute()
    r.attribute_dictionary(op)
    r.expect(":")
    r.function_type(op)
    if applied:
        op.attributes["applies"] = Word(applied)
        return
    r.expect("reducer")
    groups = []
    while r.accept("("):
        groups.append(r.until(")", r.argument))
    block = r.region()
    firsts = [group[0] for group in groups if len(group) == 2]
    seconds = [group[1] for group in groups if len(group) == 2]
    block.arguments = firsts + seconds
    op.regions = [block]


def scan(r: Reader, op: Operation) -> None:
    """`chlo.scan(%inputs) inits(%inits) dimension = 0 attributes {…} { region } : types`."""
    r.expect("(")
    inputs = r.until(")", r.value)
    r.expect("inits")
    r.expect("(")
    op.operands = inputs + r.until(")", r.value)
    r.expect("dimension")
    r.expect("=")
    op.attributes["dimension"] = r.integer()
    op.attributes["input_count"] = len(inputs)
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    op.regions = [r.region()]
    signature(r, op)


def while_(r: Reader, op: Operation) -> None:
    """`while(%iterArg = %init, …) : types cond { … } do { … }`."""
    r.expect("(")
    names = []
    while not r.accept(")"):
        names.append(r.value())
        r.expect("=")
        op.operands.append(r.value())
        r.accept(",")
    if r.accept(":"):
        op.operand_types = [r.type()]
        while r.accept(","):
            op.operand_types.append(r.type())
    op.result_types = list(op.operand_types)
    located = r.trailing_location()
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    r.expect("cond")
    condition = r.region()
    r.expect("do")
    body = r.region()
    arguments = [(name, kind, None) for name, kind in zip(names, op.operand_types, strict=False)]
    condition.arguments, body.arguments = list(arguments), list(arguments)
    op.regions = [condition, body]
    op.location = located


def module(r: Reader, op: Operation) -> None:
    """`module @name attributes {…} { … }`."""
    op.name = "builtin.module"
    if r.tokens[r.at][:1] == "@":
        op.attributes["sym_name"] = str(r.symbol())
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    r.expect("{")
    block = Block()
    while not r.accept("}"):
        if not r.alias_definition():
            block.operations.append(r.operation())
    op.regions = [block]


def function(r: Reader, op: Operation) -> None:
    """`func.func public @name(%a: type {…}) -> (type {…}) attributes {…} { … }`."""
    op.name = "func.func"
    if r.tokens[r.at] in ("public", "private", "nested"):
        op.attributes["sym_visibility"] = r.take()
    op.attributes["sym_name"] = str(r.symbol())
    block = Block()
    argument_attributes = []
    r.expect("(")
    while not r.accept(")"):
        if r.tokens[r.at][:1] == "%":
            name = r.value()
            r.expect(":")
        else:
            name = ""
        kind = r.type()
        argument_attributes.append(r.dictionary() if r.accept("{") else {})
        block.arguments.append((name, kind, r.trailing_location()))
        r.accept(",")
    result_attributes = []
    if r.accept("->"):
        if r.accept("("):
            while not r.accept(")"):
                op.result_types.append(r.type())
                result_attributes.append(r.dictionary() if r.accept("{") else {})
                r.accept(",")
        else:
            op.result_types.append(r.type())
            result_attributes.append({})
    op.attributes["arg_attrs"] = argument_attributes
    op.attributes["res_attrs"] = result_attributes
    if r.accept("attributes"):
        r.attribute_dictionary(op)
    if r.tokens[r.at] == "{":
        body = r.region()
        block.operations = body.operations
        op.regions = [block]


def sdy_manual(r: Reader, op: Operation) -> None:
    """`sdy.manual_computation(%a) in_shardings=[…] out_shardings=[…] manual_axes={…} (%arg: type) {…} : types`."""
    r.expect("(")
    op.operands = r.until(")", r.value)
    while r.tokens[r.at] in ("in_shardings", "out_shardings", "manual_axes"):
        name = r.take()
        r.expect("=")
        op.attributes[name] = Raw(r.balanced())
    r.expect("(")
    arguments = r.until(")", r.argument)
    block = r.region()
    block.arguments = arguments
    op.regions = [block]
    signature(r, op)


def return_(r: Reader, op: Operation) -> None:
    """`return %a, … : types`."""
    while r.tokens[r.at][:1] == "%":
        op.operands.append(r.take())
        r.accept(",")
    r.attribute_dictionary(op)
    if r.accept(":"):
        op.operand_types = [r.type()]
        while r.accept(","):
            op.operand_types.append(r.type())
