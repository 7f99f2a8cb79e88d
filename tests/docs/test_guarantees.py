"""Every test that docs/guarantees.md names is there."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_what_is_named_is_there() -> None:
    named = set(NAMED.findall((ROOT / "docs" / "guarantees.md").read_text("utf-8")))
    assert len(named) > 30
    assert not [f"{path}::{test}" for path, test in sorted(named) if test not in functions_of(ROOT / path)]


def functions_of(path: Path) -> set[str]:
    if not path.exists():
        return set()
    tree = ast.parse(path.read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
