"""Interviews: a question to an agent, living or dead, as of a tick, answered by a copy of it.

The copy is the prompt of its last turn up to that tick, word for word, with the question after it, put to the model
that the society names for its cohort. Nothing of it reaches the agent, the world or the record: question and answer
are kept in `interviews/` beside the record, where no digest covers them and no replay looks.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b

from ethnos.actors.inference.request import Layer, Reply, Request, Sampling
from ethnos.actors.thinking import Models
from ethnos.analytics import life
from ethnos.errors import QueryError, RecordDamaged
from ethnos.record.directory import RunDirectory, now, write_durably
from ethnos.record.reader import connect
from ethnos.society import LLMMind, RoutedMind, Society
from ethnos.world.rebuild import society_of

MAX_QUESTION = 4_000
INSTRUCTION = (
    "Time stands still for a moment, and you take no action now. An interviewer from outside your world asks you a "
    "question. Answer as yourself, truthfully, from what you know and remember, in a few plain sentences."
)


@dataclass(frozen=True)
class Interview:
    """A question and what the copy said. The answer is a model's words: untrusted."""

    agent_id: int
    tick: int
    """As of when it was asked."""
    turn: int
    """The tick of the turn whose prompt the copy was made of."""
    question: str
    answer: str
    model: str
    tokens: int
    asked: str
    """Wall clock, ISO 8601."""


def interview(run: RunDirectory, agent: int, tick: int, question: str) -> Interview:
    """Ask a copy of an agent as it was at the end of a tick, and keep the answer apart from the record.

    Raises QueryError if nobody can be asked: no such agent, or a mind that is code and has no words.
    """
    question = question.strip()
    if not 1 <= len(question) <= MAX_QUESTION:
        raise QueryError(f"a question has 1 to {MAX_QUESTION} characters")
    turn, layers = _last_thought(run, agent, tick)
    society = society_of(run)
    model = _model(run, society, agent)
    request = Request(turn, agent, 0, (*layers, *_asking(question)), None, Sampling(max_tokens=400), priority=0)
    reply = asyncio.run(_put(society, model, request))
    if reply.error:
        raise QueryError(f"the model gave no answer: {reply.error}")
    tokens = reply.prompt_tokens + reply.completion_tokens
    found = Interview(agent, tick, turn, question, reply.text, model, tokens, now().isoformat(timespec="seconds"))
    _keep(run, found)
    return found


def _asking(question: str) -> Sequence[Layer]:
    return (Layer("interview", INSTRUCTION, "system"), Layer("question", question, "user"))


def _last_thought(run: RunDirectory, agent: int, tick: int) -> tuple[int, list[Layer]]:
    """The prompt of its last turn up to a tick in which a model was asked."""
    with connect(run) as con:
        if life.who(con, agent) is None:
            raise QueryError(f"there is no agent {agent}")
        turns = [t["tick"] for t in life.decisions(con, agent, tick, 200) if t["thought"]]
        if not turns:
            raise QueryError(
                f"agent {agent} asked no model up to tick {tick}: a mind in code has no words to answer with"
            )
        layers = life.turn(con, agent, turns[0])["layers"]
    kept = [layer for layer in layers if layer["name"] != "retry"]
    return turns[0], [Layer(x["name"], x["text"], "user" if x["name"] == "observation" else "system") for x in kept]


def _model(run: RunDirectory, society: Society, agent: int) -> str:
    with connect(run) as con:
        who = life.who(con, agent)
    mind = society.mind_of(str(who["cohort"])) if who else None
    mind = mind.large if isinstance(mind, RoutedMind) else mind
    if not isinstance(mind, LLMMind):
        raise QueryError(f"agent {agent} thinks with no model")
    return mind.model


async def _put(society: Society, model: str, request: Request) -> Reply:
    async with Models(society) as models:
        return await models.ask(model, request)


def _keep(run: RunDirectory, found: Interview) -> None:
    folder = run.path / "interviews"
    folder.mkdir(exist_ok=True)
    text = json.dumps(asdict(found), ensure_ascii=False, indent=2).encode("utf-8", "replace")
    name = f"{found.asked[:19].replace(':', '')}-{found.agent_id}-{blake2b(text, digest_size=4).hexdigest()}.json"
    write_durably(folder / name, text)


def interviews(run: RunDirectory, agent: int) -> list[Interview]:
    """Those of one agent, the latest first. Raises RecordDamaged if a file is none."""
    found = []
    for path in sorted((run.path / "interviews").glob(f"*-{agent}-*.json"), reverse=True)[:50]:
        try:
            found.append(Interview(**json.loads(path.read_bytes())))
        except (OSError, ValueError, TypeError) as error:
            raise RecordDamaged(f"{path} is no interview: {error}") from None
    return found


__all__ = ["Interview", "interview", "interviews"]
