"""A user's own passes, backends and custom calls, from a file named on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler.driver import compile_module, optimise
from compiler.frontend.mlir import parse
from compiler.options import CompileOptions, OptionError
from compiler.plugins import PluginError

PROGRAM = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @my.twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}"""

PLUGIN = """
from compiler.ir.rewrite import Rule
from compiler.passes.base import Option

class AddsBecomeSubtracts:
    name = "adds-become-subtracts"
    options = (Option("flip", True, "whether to do it"),)

    def run(self, editor, context):
        if not context.options["flip"]:
            return
        for computation in editor.computations():
            for name in editor.working(computation).names():
                found = editor.get(computation, name)
                if found.opcode == "add":
                    with editor.rewrite(Rule("flip", "x + y = x - y, which is wrong"), computation, name) as edit:
                        edit.replace(name, edit.add("subtract", found.operands))

def register(registry):
    registry.add_pass(AddsBecomeSubtracts(), id="flip", before="fusion", why="to be found by bisection")
    registry.add_custom_call("my.twice", lambda evaluation, x: x + x)
"""


def plugin(folder: Path, text: str = PLUGIN) -> str:
    path = folder / "plugin.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("backend", ["interpreter", "cpu"])
def test_passes_options_and_custom_calls_of_a_plugin_take_part(tmp_path: Path, backend: str) -> None:
    module = parse(PROGRAM).module
    x = np.arange(4, dtype=np.float32)
    for flip, factor in ((True, 1), (False, 3)):
        options = CompileOptions(backend=backend, plugins=(plugin(tmp_path),), values={"flip": flip})
        (got,) = compile_module(module, options).executable.run([x])
        np.testing.assert_array_equal(got, factor * x)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "defines no function register"),
        ("def register(registry):\n    raise ValueError('no')\n", "plugin.py:2: ValueError: no"),
        ("def register(:\n", "plugin.py:1: SyntaxError"),
        ("import nothing_of_that_name\n", "plugin.py:1: ModuleNotFoundError"),
        ("raise SystemExit(3)\n", "SystemExit"),
    ],
)
def test_a_broken_plugin_is_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PluginError) as caught:
        optimise(parse(PROGRAM).module, CompileOptions(plugins=(plugin(tmp_path, text),)))
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_stage_next_to_one_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    text = PLUGIN.replace('before="fusion"', 'before="fusoin"')
    with pytest.raises(OptionError, match="'fusoin', which does not exist"):
        optimise(parse(PROGRAM).module, CompileOptions(plugins=(plugin(tmp_path, text),)))


def test_a_missing_plugin_is_told() -> None:
    with pytest.raises(PluginError, match="no such plugin file"):
        optimise(parse(PROGRAM).module, CompileOptions(plugins=("nowhere.py",)))
