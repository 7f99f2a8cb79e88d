"""What a run's models did, in a few figures and a few examples."""

from dataclasses import dataclass

from duckdb import DuckDBPyConnection

EXAMPLES = 3


@dataclass(frozen=True)
class Example:
    """A decision with the reason its agent gave. Both are a model's words: untrusted."""

    tick: int
    agent: str
    action: str
    reason: str


@dataclass(frozen=True)
class Thinking:
    """Turns that went to models."""

    turns: int
    stages: dict[str, int]
    """By how they ended: clean, repaired, reasked, gave_up, late, failed."""
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    decisions_per_s: float
    tokens_per_s: float
    """Read and written, over the time of the ticks."""
    cost: float
    examples: list[Example]


def thinking(con: DuckDBPyConnection) -> Thinking | None:
    """What the models did; None if no model was asked."""
    turns, prompt, cached, completion, cost = con.execute(
        "SELECT count(*), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), sum(cost) FROM calls"
    ).fetchall()[0]
    if not turns:
        return None
    seconds = con.execute("SELECT sum(elapsed) / 1000 FROM ticks WHERE decisions > 0").fetchall()[0][0] or 1e-9
    stages = con.execute("SELECT stage, count(*) AS n FROM calls GROUP BY stage ORDER BY n DESC, stage").fetchall()
    return Thinking(
        turns=turns,
        stages={str(stage): n for stage, n in stages},
        prompt_tokens=int(prompt or 0),
        cached_tokens=int(cached or 0),
        completion_tokens=int(completion or 0),
        decisions_per_s=turns / seconds,
        tokens_per_s=((prompt or 0) + (completion or 0)) / seconds,
        cost=float(cost or 0.0),
        examples=examples(con),
    )


def examples(con: DuckDBPyConnection) -> list[Example]:
    """A few decisions that were carried out, of different agents where there are several, spread over the run."""
    rows = con.execute(
        """
        SELECT c.tick, a.name, d.action || ' ' || d.args, c.reason
        FROM calls c JOIN decisions d USING (tick, agent_id) JOIN agents a USING (agent_id)
        WHERE d.outcome = 'done' AND c.reason <> ''
        QUALIFY row_number() OVER (
            PARTITION BY c.tick * $n // (SELECT max(tick) + 1 FROM calls)
            ORDER BY hash(c.agent_id, c.tick)
        ) = 1
        ORDER BY c.tick
        """,
        {"n": EXAMPLES},
    ).fetchall()
    return [Example(*row) for row in rows]
