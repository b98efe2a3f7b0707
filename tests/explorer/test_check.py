"""Self-checking files: several programs a file, which of them fail, and where."""

from explorer.check import check_file, check_paths

GOOD = """
func.func @one() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  check.expect_eq_const %0, dense<[1, 2]> : tensor<2xi32>
  func.return
}
"""
BAD = """
func.func @two() {
  %0 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %1 = stablehlo.negate %0 : tensor<2xi32>
  check.expect_eq_const %1, dense<[-1, 2]> : tensor<2xi32>
  func.return
}
"""
BROKEN = "func.func @three() {\n  %0 = stablehlo.constant\n"
PARALLEL = """
func.func @rank(%x: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.add %x, %x : tensor<i32>
  func.return %0 : tensor<i32>
}
func.func @main() {
  %0 = stablehlo.constant dense<3> : tensor<i32>
  %1 = stablehlo.constant dense<4> : tensor<i32>
  %2:2 = "interpreter.run_parallel"(%0, %1) {programs = [[@rank, @rank]]}
    : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)
  check.expect_eq_const %2#0, dense<6> : tensor<i32>
  check.expect_eq_const %2#1, dense<8> : tensor<i32>
  func.return
}
"""


def test_programs_of_a_file(tmp_path):
    path = tmp_path / "several.mlir"
    path.write_text("// -----\n".join((GOOD, BAD, BROKEN, PARALLEL)))
    results = check_file(str(path))
    assert [r.passed for r in results] == [True, False, False, True]
    assert [r.function for r in results] == ["one", "two", "", "main"]
    assert f"{path}:12:" in results[1].message and "got -2, want 2 at [1]" in results[1].message
    assert f"{path}:1" in results[2].message


def test_folders_are_searched(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.mlir").write_text(GOOD)
    (tmp_path / "sub" / "b.mlir").write_text(BAD)
    (tmp_path / "notes.txt").write_text("nothing")
    assert [r.passed for r in check_paths([str(tmp_path)])] == [True, False]
    (missing,) = check_file(str(tmp_path / "missing.mlir"))
    assert "cannot be read" in missing.message


def test_another_backend_may_run_them(tmp_path):
    path = tmp_path / "a.mlir"
    path.write_text(GOOD)
    modules = []
    assert check_file(str(path), lambda module: modules.append(module) or [])[0].passed
    assert modules[0].entry == "one"
