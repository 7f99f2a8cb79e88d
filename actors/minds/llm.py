"""A mind that thinks with a language model.

A turn: the memory is read, the prompt written, the model asked through the inference pool, its reply held against
the menu; if it cannot be used, the model is told why and asked once more. Each turn ends in one of six stages, and
the record says in which:

    clean     the first reply was an answer as it stood
    repaired  the first reply became one by a repair that loses nothing (prose around it, a trailing comma)
    reasked   the second reply was an answer, repaired or not
    gave_up   neither was
    late      no reply in time
    failed    the pool had none to give (an engine's error, the run's budget)

In the last three the mind raises `MindFailed`; the world records why, and the agent does the neutral thing.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from ethnos import chance
from ethnos.actors.inference.request import Reply, Request, Sampling
from ethnos.actors.minds import memory as memories
from ethnos.actors.minds.layers import STORE, LayerStore
from ethnos.actors.minds.memory import Keeper, Memory, MemoryLimits
from ethnos.actors.minds.menu import Answer, Form, Kitchen, Menu
from ethnos.actors.minds.prompt import Budgets, Prompt, PromptWriter
from ethnos.actors.minds.structured import Unusable, extract
from ethnos.errors import MindFailed
from ethnos.world.prose import gist
from ethnos.world.scenario import Scenario
from ethnos.world.spec import ScenarioSpec
from ethnos.world.turn import Decision, Turn

Stage = Literal["clean", "repaired", "reasked", "gave_up", "late", "failed"]
Complete = Callable[[Request], Awaitable[Reply]]
"""What the inference pool offers."""

RECORDED_CHARS = 8_000
"""Longest reply that the record keeps; of a longer one it keeps the beginning."""
LEAST_SECONDS = 0.5
"""With less time left than this nobody is asked again."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the minds of a cohort think."""

    brief: str = ""
    """What the cohort is told beside the world's rules: its part, what it lives for, how to speak."""
    form: Form = field(default_factory=Form)
    memory: MemoryLimits = field(default_factory=MemoryLimits)
    budgets: Budgets = field(default_factory=Budgets)
    temperature: Annotated[float, Field(ge=0, le=5)] = 0.7
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    max_tokens: Annotated[int, Field(ge=16, le=100_000)] = 400
    reask: bool = True
    """Whether a model that gave no usable answer is told why and asked once more."""
    special_tokens: tuple[str, ...] = ()
    """What the model's chat template takes for its own, beside what is common."""


@dataclass
class _Talk:
    """The calls of one turn, and what came of them."""

    stage: Stage = "failed"
    answer: Answer | None = None
    problem: str = ""
    replies: list[Reply] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    repairs: tuple[str, ...] = ()
    marks: list[Any] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)


class LLMMind:
    """The mind of a cohort: stateless between turns, so one serves any number of agents at once."""

    def __init__(
        self,
        scenario: Scenario[Any, Any],
        complete: Complete,
        settings: Settings | None = None,
        *,
        deadline: float = 60.0,
        store: LayerStore = STORE,
    ) -> None:
        """`deadline` are the seconds a turn may take, all calls together."""
        self.settings = settings or Settings()
        self._scenario = scenario
        self._complete = complete
        self._deadline = deadline
        self._store = store
        self._kitchen = Kitchen(ScenarioSpec(type(scenario)), self.settings.form)
        self._keeper = Keeper(self.settings.memory)
        s = self.settings
        self._writer = PromptWriter(scenario, self._kitchen, s.brief, s.memory, s.budgets, s.special_tokens)

    async def decide(self, turn: Turn) -> Decision:
        """Think. Raises MindFailed if no decision comes of it."""
        memory, trouble = self._memory(turn)
        menu = self._menu(turn, memory)
        talk = await self._talk(turn, self._writer.write(turn, memory, menu), menu)
        how = {**self._provenance(talk), **({"memory": trouble} if trouble else {})}
        if talk.answer is None:
            raise MindFailed(talk.problem, how, late=talk.stage == "late")
        after = self._remember(turn, memory, talk.answer)
        return Decision(talk.answer.action, talk.answer.message, memories.write(after), how)

    def prompt(self, turn: Turn) -> Prompt:
        """What the model would be sent in this turn."""
        memory, _ = self._memory(turn)
        return self._writer.write(turn, memory, self._menu(turn, memory))

    def schema(self, turn: Turn) -> dict[str, Any]:
        """What its answer would have to obey."""
        return self._menu(turn, self._memory(turn)[0]).schema

    def _memory(self, turn: Turn) -> tuple[Memory, str]:
        """What the agent knows as its turn begins, and what was wrong with it: then it starts afresh."""
        known = turn.agent.memory or memories.inherit(turn.agent.inheritance, self.settings.memory)
        try:
            memory, trouble = memories.read(known), ""
        except ValueError as error:
            memory, trouble = Memory(), f"started afresh: {error}"
        outcome = getattr(turn.observation, "outcome", "")
        return self._keeper.settled(memory, turn.tick, outcome if isinstance(outcome, str) else ""), trouble

    def _menu(self, turn: Turn, memory: Memory) -> Menu:
        """What is open; if nothing is, the neutral thing."""
        items = [s.id for s in memory.playbook]
        menu = self._kitchen.menu(self._scenario.options(turn.observation), items)
        return menu if menu.dishes else self._kitchen.neutral(self._scenario.neutral, items)

    async def _talk(self, turn: Turn, prompt: Prompt, menu: Menu) -> _Talk:
        talk, end = _Talk(), time.monotonic() + self._deadline
        await self._call(talk, turn, prompt, menu, end)
        if talk.stage == "gave_up" and self.settings.reask and end - time.monotonic() > LEAST_SECONDS:
            again = self._writer.retry(prompt, talk.problem, talk.replies[-1].text)
            await self._call(talk, turn, again, menu, end)
            if talk.answer is not None:
                talk.stage = "reasked"
        return talk

    async def _call(self, talk: _Talk, turn: Turn, prompt: Prompt, menu: Menu, end: float) -> None:
        """Ask once; whoever is asked again goes first, since the tick has waited for it already."""
        call = len(talk.replies)
        sampling = self._sampling(turn, call)
        talk.marks = self._store.put(prompt.layers)
        talk.seeds.append(sampling.seed or 0)
        request = Request(
            tick=turn.tick,
            agent_id=turn.agent.id,
            call=call,
            layers=prompt.layers,
            schema=menu.schema,
            sampling=sampling,
            deadline_s=end - time.monotonic(),
            priority=call,
        )
        reply = await self._complete(request)
        talk.replies.append(reply)
        talk.answer, talk.stage, talk.problem, talk.repairs = judged(reply, menu)
        talk.problems += [talk.problem] if talk.problem else []

    def _sampling(self, turn: Turn, call: int) -> Sampling:
        s = self.settings
        draws = chance.generator(turn.seed, "sampling", agent=turn.agent.id, tick=turn.tick)
        seed = int(draws.integers(2**31, size=call + 1)[call])
        return Sampling(s.temperature, s.top_p, s.max_tokens, seed)

    def _remember(self, turn: Turn, memory: Memory, answer: Answer) -> Memory:
        kind, args = self._kitchen.spec.encode_action(answer.action)
        heard = getattr(turn.observation, "heard", ())
        episode = self._keeper.episode(
            turn.tick,
            gist(turn.observation),
            heard if isinstance(heard, Sequence) else (),
            did=f"{kind} {args.decode('utf-8', 'replace')}",
            said=answer.message,
            why=answer.reason,
        )
        return self._keeper.with_turn(memory, episode, answer.thought, turn.agent.name)

    def _provenance(self, talk: _Talk) -> dict[str, Any]:
        """How the decision came about, for the record."""
        last, s = talk.replies[-1], self.settings
        return {
            "stage": talk.stage,
            "reason": talk.answer.reason if talk.answer else "",
            "model": last.model,
            "engine": last.engine,
            "tokens": sum(r.prompt_tokens for r in talk.replies),
            "cached": sum(r.cached_tokens for r in talk.replies),
            "completion": sum(r.completion_tokens for r in talk.replies),
            "latency_ms": round(sum(r.latency_ms for r in talk.replies), 3),
            "attempts": sum(r.attempts for r in talk.replies),
            "cost": sum(r.cost for r in talk.replies),
            "calls": len(talk.replies),
            "sampling": {"temperature": s.temperature, "top_p": s.top_p, "max_tokens": s.max_tokens},
            "seed": talk.seeds[-1],
            "layers": talk.marks,
            "reply": recordable(last.text),
            "finish": last.finish,
            **({"first_reply": recordable(talk.replies[0].text)} if len(talk.replies) > 1 else {}),
            **({"repairs": list(talk.repairs)} if talk.repairs else {}),
            **({"errors": [recordable(p) for p in talk.problems]} if talk.problems else {}),
            **({"detail": last.detail} if last.detail else {}),
        }


def judged(reply: Reply, menu: Menu) -> tuple[Answer | None, Stage, str, tuple[str, ...]]:
    """(answer, stage, problem, repairs) of one reply. Never raises, whatever the reply."""
    if reply.error:
        return None, "late" if reply.error == "late" else "failed", reply.error, ()
    try:
        found = extract(reply.text)
        answer = menu.check(found.value)
    except Unusable as error:
        cut = " (it was cut off at the length limit)" if reply.finish == "length" else ""
        return None, "gave_up", f"{error}{cut}", ()
    repairs = (*found.repairs, *answer.repairs)
    return answer, "repaired" if repairs else "clean", "", repairs


def recordable(text: str) -> str:
    """A model's words as the record takes them: valid, and not without end."""
    kept = text.encode("utf-8", "replace").decode()
    return kept if len(kept) <= RECORDED_CHARS else f"{kept[:RECORDED_CHARS]}\u2026 [{len(kept)} characters]"


__all__ = ["Complete", "LLMMind", "Settings", "Stage", "judged", "recordable"]
