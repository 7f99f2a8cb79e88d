"""`ethnos probe` over a real endpoint: from a society file to findings."""

import json
from pathlib import Path
from typing import Any

import pytest

from ethnos.cli import probing
from tests.thinking.endpoint import endpoint

ALWAYS_A = json.dumps({"reason": "it comes first", "choice": "A"})


def probed(tmp_path: Path, capsys: pytest.CaptureFixture[str], reply: str) -> list[dict[str, Any]]:
    with endpoint(lambda number, body: reply) as server:
        file = tmp_path / "probed.yaml"
        model = f'{{kind: openai, base_url: "{server.url}", model: tiny, api_key_env: null}}'
        mind = "{kind: llm, model: m}"
        file.write_text(
            f"scenario: terra\nmodels:\n  m: {model}\npopulation:\n  - {{cohort: a, count: 1, mind: {mind}}}\n"
        )
        probing.ask(str(file), None, ["kind:agreeableness=1"], 1, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["model"] == "m"
    assert {f["persona"] for f in told["findings"]} == {"nobody", "kind"}
    assert {f["bias"] for f in told["findings"]} == {"framing", "anchoring", "bandwagon", "authority"}
    return list(told["findings"])


def test_a_model_that_looks_at_nothing_has_no_bias(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for finding in probed(tmp_path, capsys, ALWAYS_A):
        assert (finding["answers"], finding["unusable"]) == (12, 0)
        assert finding["effect"] == 0


def test_a_model_that_cannot_answer_is_said_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for finding in probed(tmp_path, capsys, "no idea"):
        assert (finding["answers"], finding["unusable"]) == (0, 12)
        assert finding["effect"] is None
