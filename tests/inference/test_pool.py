"""The pool's promises, against engines without a model."""

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ethnos.actors.inference.engines.base import Broken, Denied, Overloaded, Prices, Refused, Traits, Trouble
from ethnos.actors.inference.pool import Pool
from ethnos.actors.inference.request import Layer, Reply, Request
from ethnos.actors.inference.settings import Settings
from ethnos.errors import EthnosError

from .stub import Stub, ask

QUICK = Settings(linger_s=0.001, first_recheck_s=0.02, longest_recheck_s=0.05, health_timeout_s=0.3)
ONE = Traits(batch=1, limit=1, max_limit=1)


def once(trouble: Trouble):
    """A fault that happens the first time each request is asked."""
    return lambda stub, request: trouble if stub.asked.count(request.id) == 1 else None


async def eventually(condition, within: float = 5.0) -> None:
    end = time.monotonic() + within
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.005)


async def test_every_request_is_answered_by_its_own_answer():
    stub = Stub()
    async with Pool([stub]) as pool:
        replies = await pool.complete_many([ask(agent) for agent in range(200)])
    assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(200)]
    assert sorted(stub.served) == sorted(f"0-{agent}-0" for agent in range(200))
    assert all(r.error == "" and r.engine == "stub" and r.model == "stub-model" and r.attempts == 1 for r in replies)


async def test_what_is_ready_goes_together():
    stub = Stub()
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent) for agent in range(64)])
    assert [len(call) for call in stub.calls] == [16, 16, 16, 16]


async def test_no_more_in_flight_than_the_engine_takes():
    stub = Stub(traits=Traits(batch=4, limit=8, max_limit=8), delay=lambda _: 0.01)
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent) for agent in range(60)])
    assert stub.peak <= 8


async def test_an_engine_that_does_well_is_given_more():
    stub = Stub(traits=Traits(batch=1, limit=2, max_limit=10), delay=lambda _: 0.002)
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent) for agent in range(300)])
        assert pool.stats()["engines"]["stub"]["limit"] == 10


async def test_equal_beginnings_go_together():
    stub = Stub(traits=Traits(batch=10, limit=10, max_limit=10))
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent, head="ab"[agent % 2]) for agent in range(20)])
    parity = [{int(i.split("-")[1]) % 2 for i in call} for call in stub.calls]
    assert all(len(p) == 1 for p in parity)


async def test_high_priorities_go_first():
    stub = Stub(traits=ONE, delay=lambda _: 0.001)
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent, priority=agent % 3) for agent in range(30)])
    priorities = [int(i.split("-")[1]) % 3 for i in stub.served]
    assert priorities == sorted(priorities, reverse=True)


async def test_heads_stay_with_their_engine():
    """The same heads, three ticks: each head is read by one engine only, as long as it is not too much for it."""
    stubs = [Stub(f"e{i}", traits=Traits(8, 64, 64)) for i in range(3)]
    async with Pool(stubs) as pool:
        for tick in range(3):
            await pool.complete_many([ask(agent, tick, head=f"head {agent % 12}") for agent in range(48)])
    agents = [{i.split("-")[1] for i in stub.served} for stub in stubs]
    assert sum(len(a) for a in agents) == 48, "an agent stays where it was served"
    assert all(len(a) >= 4 for a in agents), "every engine works"


async def test_one_shared_head_does_not_leave_an_engine_idle():
    stubs = [Stub(f"e{i}", traits=Traits(4, 8, 8), delay=lambda _: 0.01) for i in range(2)]
    async with Pool(stubs) as pool:
        await pool.complete_many([ask(agent) for agent in range(80)])
    assert min(len(stub.served) for stub in stubs) > 20


async def test_a_new_head_is_read_once_before_the_wave():
    stub = Stub(traits=Traits(8, 64, 64, warms=True), cached=50, delay=lambda _: 0.001)
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent) for agent in range(40)])
        await pool.complete_many([ask(agent, 1) for agent in range(40)])
        assert pool.stats()["engines"]["stub"]["warmups"] == 1
        assert pool.spent.prompt_tokens == 80 * 100 + 5, "the warm-up is paid too"
    assert len(stub.warmed) == 1


async def test_a_head_that_fell_out_of_the_cache_is_read_again():
    stub = Stub(traits=Traits(8, 64, 64, warms=True), cached=0)
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent) for agent in range(8)])
        await pool.complete_many([ask(agent, 1) for agent in range(8)])
    assert len(stub.warmed) == 2


async def test_a_warm_up_that_fails_is_no_matter():
    class Cold(Stub):
        async def warm(self, request: Request):
            raise Broken("no")

    stub = Cold(traits=Traits(8, 64, 64, warms=True))
    async with Pool([stub]) as pool:
        assert not any(r.error for r in await pool.complete_many([ask(agent) for agent in range(20)]))


async def test_the_same_question_is_paid_once():
    stub = Stub(delay=lambda _: 0.02)
    async with Pool([stub]) as pool:
        first, second = await asyncio.gather(pool.complete(ask(1)), pool.complete(ask(1)))
        third = await pool.complete(ask(1))
        other = await pool.complete(ask(1, head="another prompt under the same id"))
    assert first == second == third
    assert stub.served == ["0-1-0", "0-1-0"] and other.text == "to 0-1-0"


async def test_memory_of_answers_is_bounded():
    stub = Stub()
    async with Pool([stub], settings=Settings(memo_replies=10)) as pool:
        await pool.complete_many([ask(agent) for agent in range(50)])
        assert pool.stats()["remembered"] == 10
        await pool.complete(ask(49))
        assert len(stub.served) == 50


async def test_failures_are_not_remembered():
    stub = Stub(fault=lambda s, r: Refused("no") if len(s.asked) == 1 else None)
    async with Pool([stub]) as pool:
        assert (await pool.complete(ask())).error
        assert (await pool.complete(ask())).text == "to 0-0-0"


async def test_a_late_request_is_called_back():
    stub = Stub(delay=lambda r: 30.0 if r.agent_id == 3 else 0.001)
    async with Pool([stub]) as pool:
        began = time.monotonic()
        replies = await pool.complete_many([ask(agent, deadline=0.2) for agent in range(8)])
        assert time.monotonic() - began < 15, "the one that takes 30 s was not waited for"
        await eventually(lambda: stub.aborted)
        assert pool.stats()["in_flight"] == 0
    assert [r.error for r in replies] == ["late" if agent == 3 else "" for agent in range(8)]
    assert len(stub.aborted) == 1 and ".0-3-0." in stub.aborted[0]


async def test_what_waits_too_long_never_starts():
    stub = Stub(traits=ONE, delay=lambda _: 0.6)
    async with Pool([stub]) as pool:
        replies = await pool.complete_many([ask(0), *(ask(agent, deadline=0.1) for agent in range(1, 5))])
    assert [r.error for r in replies] == ["", *["late"] * 4]
    assert stub.asked == ["0-0-0"]
    assert [r.attempts for r in replies] == [1, 0, 0, 0, 0]


async def test_an_answer_that_comes_too_late_is_nobodys_but_paid():
    stub = Stub(delay=lambda r: 0.2 if r.agent_id == 0 else 0.4)
    async with Pool([stub]) as pool:
        first, second = await asyncio.gather(pool.complete(ask(0, deadline=0.1)), pool.complete(ask(1)))
        assert (first.error, second.text) == ("late", "to 0-1-0")
        assert pool.stats()["strays"] == 1
        assert pool.spent.completion_tokens == 20


async def test_who_stops_waiting_stops_the_work():
    stub = Stub(delay=lambda _: 30.0)
    async with Pool([stub]) as pool:
        task = asyncio.create_task(pool.complete(ask()))
        await eventually(lambda: stub.asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: stub.aborted and stub.at_work == 0)
        assert pool.stats()["in_flight"] == 0


async def test_one_of_two_who_wait_may_go():
    stub = Stub(delay=lambda _: 0.1)
    async with Pool([stub]) as pool:
        leaver, stayer = (asyncio.create_task(pool.complete(ask())) for _ in range(2))
        await eventually(lambda: stub.asked)
        leaver.cancel()
        assert (await stayer).text == "to 0-0-0"


async def test_a_failure_is_tried_again():
    stub = Stub(traits=ONE, fault=once(Broken("HTTP 500")))
    async with Pool([stub]) as pool:
        reply = await pool.complete(ask())
        assert pool.stats()["retries"] == 1
    assert (reply.text, reply.attempts) == ("to 0-0-0", 2)


async def test_what_always_fails_gets_the_engines_last_word():
    stub = Stub(traits=ONE, fault=lambda s, r: Broken("HTTP 500: oops") if r.agent_id == 1 else None)
    async with Pool([stub]) as pool:
        replies = await pool.complete_many([ask(agent) for agent in range(3)])
    assert [r.error for r in replies] == ["", "stub: HTTP 500: oops", ""]
    assert replies[1].attempts == 4


async def test_what_is_refused_is_not_repeated():
    stub = Stub(traits=ONE, fault=lambda s, r: Refused("HTTP 400: no such schema"))
    async with Pool([stub]) as pool:
        reply = await pool.complete(ask())
    assert (reply.error, stub.asked) == ("stub: HTTP 400: no such schema", ["0-0-0"])


async def test_a_fault_in_an_engine_of_ours_is_an_error_not_a_crash(caplog):
    def fault(stub, request):
        raise KeyError("bug")

    async with Pool([Stub(fault=fault)], settings=QUICK) as pool:
        reply = await pool.complete(ask())
    assert "KeyError" in reply.error and "fault of its own" in caplog.text


async def test_waits_as_long_as_it_is_told():
    """Case 3: HTTP 429 late in a run. Everybody waits as told, finishes, and nothing is asked twice in vain."""
    told: list[float] = []

    def fault(stub, request):
        if request.tick < 45 or (told and time.monotonic() >= told[0] + 0.4):
            return None
        told.append(time.monotonic())
        return Overloaded("HTTP 429", retry_after=told[0] + 0.4 - told[-1])

    stub = Stub(traits=Traits(batch=1, limit=10, max_limit=10), fault=fault)
    async with Pool([stub]) as pool:
        for tick in range(44, 47):
            replies = await pool.complete_many([ask(agent, tick) for agent in range(10)])
            assert not any(r.error for r in replies)
    assert len(stub.served) == len(set(stub.served)) == 30
    assert len(stub.asked) == 30 + len(told) <= 40, "nobody asks before the time"


async def test_what_was_learned_about_an_engine_lasts():
    def fault(stub, request):
        return Overloaded("HTTP 429", 0.01) if stub.at_work > 4 else None

    stub = Stub(traits=Traits(batch=1, limit=64, max_limit=64), fault=fault, delay=lambda _: 0.005)
    async with Pool([stub]) as pool:
        await pool.complete_many([ask(agent) for agent in range(100)])
        in_vain = len(stub.asked) - len(stub.served)
        await pool.complete_many([ask(agent, 1) for agent in range(100)])
        assert len(stub.asked) - len(stub.served) - in_vain < in_vain
        assert pool.stats()["engines"]["stub"]["limit"] <= 8


async def test_backs_off_further_each_time():
    times: list[float] = []

    def fault(stub, request):
        times.append(time.monotonic())
        return Overloaded("HTTP 503") if len(times) < 4 else None

    async with Pool([Stub(traits=ONE, fault=fault)]) as pool:
        assert (await pool.complete(ask())).text
    waits = [b - a for a, b in zip(times, times[1:], strict=False)]
    assert waits[0] >= 0.24 and waits[1] >= 0.49 and waits[2] >= 0.99


async def test_while_one_engine_rests_another_works():
    tired = Stub("tired", fault=lambda s, r: Overloaded("HTTP 429", 30.0))
    fresh = Stub("fresh")
    async with Pool([tired, fresh]) as pool:
        replies = await pool.complete_many([ask(agent, deadline=5.0) for agent in range(100)])
    assert {r.engine for r in replies} == {"fresh"} and len(tired.calls) == 1


async def test_when_an_engine_dies_its_requests_go_elsewhere():
    dying = Stub("dying", delay=lambda _: 0.02)
    living = Stub("living", delay=lambda _: 0.002)

    async def kill() -> None:
        await eventually(lambda: dying.asked)
        dying.alive = False

    async with Pool([dying, living], settings=QUICK) as pool:
        replies, _ = await asyncio.gather(pool.complete_many([ask(agent) for agent in range(150)]), kill())
        assert not any(r.error for r in replies)
        assert [r.text for r in replies] == [f"to 0-{agent}-0" for agent in range(150)]
        assert pool.stats()["engines"]["dying"]["down"]


async def test_a_dead_engine_is_restarted_and_comes_back():
    stub = Stub()
    revive = stub.revive

    async def revive_at_the_third_try() -> None:
        await revive()
        stub.alive = stub.revived >= 3

    stub.revive = revive_at_the_third_try  # type: ignore[method-assign]
    async with Pool([stub], settings=QUICK) as pool:
        stub.alive = False
        reply = await pool.complete(ask())
        assert reply.text == "to 0-0-0"
        assert not pool.stats()["engines"]["stub"]["down"] and stub.revived == 3


async def test_with_every_engine_dead_it_is_late_and_says_why():
    stub = Stub()
    async with Pool([stub], settings=QUICK) as pool:
        stub.alive = False
        reply = await pool.complete(ask(deadline=0.3))
    assert reply.error == "late" and reply.detail == {"last": "stub: nobody there"}


async def test_an_engine_that_hangs_is_found_out():
    hung, well = Stub("hung", delay=lambda _: 60.0), Stub("well")
    async with Pool([hung, well], settings=QUICK) as pool:
        hung.healthy = lambda: asyncio.sleep(60)  # type: ignore[method-assign]
        hung.start = lambda: asyncio.sleep(60)  # type: ignore[method-assign]
        await pool.complete_many([ask(agent, deadline=0.2) for agent in range(20)])
        await eventually(lambda: pool.stats()["engines"]["hung"]["down"])
        replies = await pool.complete_many([ask(agent, 1, deadline=1.0) for agent in range(20)])
        assert not any(r.error for r in replies)


async def test_a_key_that_is_wrong_stops_that_engine_only():
    locked = Stub("locked", fault=lambda s, r: Denied("HTTP 401"))
    async with Pool([locked, Stub("open")]) as pool:
        replies = await pool.complete_many([ask(agent) for agent in range(20)])
        assert not any(r.error for r in replies)
    async with Pool([Stub("locked", fault=lambda s, r: Denied("HTTP 401"))]) as pool:
        assert (await pool.complete(ask())).error == "locked: HTTP 401"


async def test_closing_leaves_nobody_waiting():
    stub = Stub(delay=lambda _: 60.0)
    pool = Pool([stub])
    await pool.start()
    waiting = asyncio.gather(*(pool.complete(ask(agent)) for agent in range(30)))
    await eventually(lambda: stub.asked)
    await pool.close()
    assert {r.error for r in await waiting} == {"closed"}
    assert (await pool.complete(ask(99))).error == "closed"
    assert stub.at_work == 0 and len(stub.aborted) == 16


async def test_halves_of_surrogate_pairs_do_no_harm():
    request = Request(0, 0, 0, (Layer("rules", "\ud800 half"),), {"enum": ["\udfff"]})
    async with Pool([Stub()]) as pool:
        assert (await pool.complete(request)).text == "to 0-0-0"


async def test_an_endless_answer_is_cut():
    class Talker(Stub):
        def _serve(self, call, deliver):
            from ethnos.actors.inference.engines.base import Answer

            deliver(call.rid, Answer("x" * 1_000_000))

    async with Pool([Talker()]) as pool:
        reply = await pool.complete(ask())
    assert len(reply.text) == 200_000 and reply.finish == "length" and reply.detail == {"text_cut_from": 1_000_000}


async def test_money_and_tokens_are_counted():
    stub = Stub(prices=Prices(prompt=1.0, cached=0.1, completion=2.0), cached=40)
    async with Pool([stub]) as pool:
        reply = await pool.complete(ask())
        assert reply.cost == pytest.approx((60 * 1.0 + 40 * 0.1 + 10 * 2.0) / 1e6)
        assert pool.spent.money == pytest.approx(reply.cost)
        assert pool.stats()["cached_share"] == 0.4
    assert pool.special_tokens() == {"<|stub|>"}


def test_engines_need_names_of_their_own():
    with pytest.raises(EthnosError, match="name"):
        Pool([Stub(), Stub()])


TROUBLES = [Broken("500"), Overloaded("429", 0.01), Overloaded("503", 0.0), Refused("400"), None, None, None]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(TROUBLES), max_size=40), st.integers(1, 3), st.integers(1, 12), st.integers(1, 40))
def test_nothing_is_lost_and_nothing_is_answered_twice(faults, engines, batch, agents):
    """Whatever goes wrong: one reply for each request, its own, and no engine serves a request twice."""

    async def society() -> tuple[list[Reply], list[str], dict]:
        left = list(faults)
        stubs = [
            Stub(f"e{i}", traits=Traits(batch, 8, 16), fault=lambda s, r: left.pop() if left else None)
            for i in range(engines)
        ]
        async with Pool(stubs, settings=QUICK) as pool:
            replies = await pool.complete_many([ask(agent) for agent in range(agents)])
            return replies, [i for stub in stubs for i in stub.served], pool.stats()

    replies, served, stats = asyncio.run(society())
    assert len(replies) == agents
    for agent, reply in enumerate(replies):
        assert reply.text == f"to 0-{agent}-0" if not reply.error else reply.text == ""
    assert len(served) == len(set(served)) == sum(not r.error for r in replies)
    assert (stats["waiting"], stats["in_flight"]) == (0, 0)


async def test_a_pool_without_any_engine_says_so_at_once():
    one, other = Stub(name="one", alive=False), Stub(name="other", alive=False)
    with pytest.raises(EthnosError, match="one: nobody there; other: nobody there"):
        async with Pool([one, other]):
            pass
