"""`profile`, `fusion` and `compare` on sample models: what they print holds together, and scripts can read it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from views.main import main

MLP = str(Path(__file__).resolve().parents[3] / "sample_models" / "mlp" / "model.mlir")


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, object]:
    assert main([*words, "--json"]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    assert found["version"] == 1 and found["command"] == words[0]
    return found


def test_profile_accounts_for_every_kernel_worst_first(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "profile", MLP, "--repeat", "2")
    kernels = found["kernels"]
    assert isinstance(kernels, list) and len(kernels) >= 5
    lost = [row["lost"] for row in kernels]
    assert lost == sorted(lost, reverse=True)
    assert all(row["seconds"] > 0 and row["calls"] == 1 for row in kernels)
    assert sum(row["seconds"] for row in kernels) == pytest.approx(found["in_kernels"])
    products = [row for row in kernels if row["kind"] == "contraction"]
    assert products and all(any(d.startswith("fusion:") for d in row["decisions"]) for row in products)
    assert main(["profile", MLP, "--repeat", "1", "--top", "2"]) == 0
    assert "more kernels" in capsys.readouterr().out


def test_fusion_names_members_and_edges(capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, "fusion", MLP)
    groups = found["groups"]
    assert isinstance(groups, list)
    taken = [edge for group in groups for edge in group["into"] if edge["chosen"] == "fuse"]
    left = [edge for group in groups for edge in group["onward"]]
    assert taken and left and all(edge["reason"] for edge in taken + left)
    name = groups[0]["kernel"]
    assert main(["fusion", MLP, name]) == 0
    assert capsys.readouterr().out.startswith(f"{name}  ")
    assert main(["fusion", MLP, name + "x"]) == 2
    assert name in capsys.readouterr().err


def test_compare_shows_what_an_override_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fused = document(capsys, "fusion", MLP)["groups"]
    assert isinstance(fused, list)
    edge = next(e for g in fused for e in g["into"] if e["chosen"] == "fuse")
    file = tmp_path / "choices.toml"
    file.write_text(f'[[override]]\ndecision = "{edge["decision"]}"\nchoice = "keep-apart"\n')
    found = document(capsys, "compare", MLP, "--overrides", str(file), "--repeat", "3")
    decisions = {row["id"]: row for row in found["decisions"]}  # type: ignore[attr-defined]
    assert decisions[edge["decision"]] == {
        "id": edge["decision"],
        "before": "fuse",
        "after": "keep-apart",
        "by": "override",
    }
    figures = {row["name"]: row for row in found["figures"]}  # type: ignore[attr-defined]
    assert figures["kernels"]["after"] == figures["kernels"]["before"] + 1
    assert all(output["equal"] for output in found["outputs"])  # type: ignore[attr-defined]


def test_compare_without_anything_to_compare_with_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", MLP]) == 2
    assert "needs something to compare with" in capsys.readouterr().err


def test_an_illegal_override_names_the_choices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups = document(capsys, "fusion", MLP)["groups"]
    assert isinstance(groups, list)
    edge = groups[0]["into"][0]["decision"]
    file = tmp_path / "choices.toml"
    file.write_text(f'[[override]]\ndecision = "{edge}"\nchoice = "sideways"\n')
    assert main(["passes", MLP, "--overrides", str(file)]) == 2
    assert "the choices are fuse, keep-apart" in capsys.readouterr().err


def test_tune_tries_alternatives_and_writes_only_winners(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from compiler.decisions.overrides import load_overrides

    file = tmp_path / "won.toml"
    status = main(["tune", MLP, "--seconds", "3", "--kind", "fusion", "-o", str(file), "--json"])
    found = json.loads(capsys.readouterr().out)
    won = {trial["decision"]: trial["choice"] for trial in found["trials"] if trial["won"]}
    assert found["trials"] and status == (0 if won else 1)
    assert load_overrides(str(file)).choices == won == found["overrides"]
    assert all(t["ratio"] < 0.97 for t in found["trials"] if t["won"])
