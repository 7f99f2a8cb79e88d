"""A run stops asking models when its budget is spent."""

import asyncio
import time

import pytest

from ethnos.actors.inference.budget import Budget, Ledger, Spent
from ethnos.actors.inference.engines.base import Answer, Prices, Traits
from ethnos.actors.inference.pool import Pool

from .stub import Stub, ask


async def test_tokens_run_out():
    stub = Stub(traits=Traits(4, 4, 4))
    async with Pool([stub], ledger=Ledger(Budget(tokens=1000))) as pool:
        replies = await pool.complete_many([ask(agent) for agent in range(50)])
        assert pool.spent.exhausted == "tokens"
        assert 1000 <= pool.spent.tokens < 1000 + 5 * 110
        assert (await pool.complete(ask(0, 1))).error == "budget"
        answered = sum(not r.error for r in replies)
        assert {r.error for r in replies} == {"", "budget"}
        assert answered * 110 == pool.spent.tokens and len(stub.served) == answered
        assert pool.stats()["over_budget"] == 50 - answered + 1


async def test_pools_that_share_a_budget_overspend_no_more_than_one():
    ledger = Ledger(Budget(tokens=10_000))
    slow = Stub(traits=Traits(1, 8, 8), delay=lambda _: 0.02)
    quick = Stub(traits=Traits(1, 32, 32), delay=lambda _: 0.002)
    async with Pool([slow], ledger=ledger) as one, Pool([quick], ledger=ledger) as other, asyncio.timeout(10):
        for tick in range(60):
            await other.complete(ask(0, tick + 1, most=10))  # until it knows how long a token is
        before = len(quick.served)
        asked = [pool.complete(ask(agent, most=10)) for agent in range(60) for pool in (one, other)]
        replies = await asyncio.gather(*asked)
    answered = sum(not r.error for r in replies)
    assert {r.error for r in replies} == {"", "budget"}
    assert (answered + before) * 110 == ledger.spent.tokens
    assert 10_000 <= ledger.spent.tokens < 10_000 + 2 * 110, "one request may be longer than was thought"
    assert slow.served and len(quick.served) > before


async def test_money_runs_out_within_one_request_of_the_budget():
    stub = Stub(traits=Traits(1, 16, 16), prices=Prices(prompt=10.0, completion=1000.0), delay=lambda _: 0.005)
    budget = Budget(money=0.1)
    async with Pool([stub], ledger=Ledger(budget)) as pool:
        await pool.complete_many([ask(agent, most=10) for agent in range(100)])
        assert pool.spent.exhausted == "money"
        assert 0.1 <= pool.spent.money < 0.1 + 2 * 0.011


async def test_wall_time_runs_out_while_everybody_waits():
    stub = Stub(traits=Traits(1, 1, 1), delay=lambda _: 0.3)
    async with Pool([stub], ledger=Ledger(Budget(wall_s=0.1))) as pool:
        began = time.monotonic()
        replies = await pool.complete_many([ask(agent) for agent in range(10)])
        assert time.monotonic() - began < 3.0, "ten calls of 0.3 s were not waited for"
        assert pool.spent.exhausted == "wall time"
    assert [r.error for r in replies].count("budget") == 9


async def test_a_resumed_run_goes_on_from_what_it_had_spent():
    async with Pool([Stub()], ledger=Ledger(Budget(tokens=1000), Spent(prompt_tokens=990))) as pool:
        assert not (await pool.complete(ask())).error
        assert (await pool.complete(ask(1))).error == "budget"
    async with Pool([Stub()], ledger=Ledger(Budget(tokens=1000), Spent(prompt_tokens=1000))) as pool:
        assert (await pool.complete(ask())).error == "budget"


async def test_what_is_remembered_costs_nothing_even_without_money():
    async with Pool([Stub()], ledger=Ledger(Budget(tokens=50))) as pool:
        first = await pool.complete(ask())
        assert pool.spent.exhausted
        assert await pool.complete(ask()) == first


def test_a_ledger_holds_back_what_might_not_fit():
    ledger = Ledger(Budget(tokens=100))
    estimate = ledger.estimate(ask(most=60), Prices())
    assert ledger.allows(estimate)
    ledger.reserve(estimate)
    assert not ledger.allows(estimate), "two might be too much"
    ledger.pay(Answer("", prompt_tokens=20, completion_tokens=3), 0.0)
    ledger.release(estimate)
    assert ledger.allows(estimate)


def test_a_ledger_learns_how_long_tokens_are():
    ledger = Ledger(Budget(tokens=10_000))
    before = ledger.estimate(ask(), Prices()).tokens
    for _ in range(50):
        ledger.pay(Answer("", prompt_tokens=100, completion_tokens=0), 0.0, characters=100)
    assert ledger.estimate(ask(), Prices()).tokens > 1.5 * before


@pytest.mark.parametrize(("answer", "cost"), [
    (Answer("", prompt_tokens=1_000_000), 2.0),
    (Answer("", prompt_tokens=1_000_000, cached_tokens=1_000_000), 0.5),
    (Answer("", completion_tokens=1_000_000), 8.0),
])  # fmt: skip
def test_prices(answer, cost):
    assert Prices(2.0, 0.5, 8.0).cost(answer) == cost


async def test_a_budget_never_hangs():
    """However small: all replies come."""
    for tokens in (0, 1, 111, 225):
        async with Pool([Stub(delay=lambda _: 0.001)], ledger=Ledger(Budget(tokens=tokens))) as pool:
            async with asyncio.timeout(5):
                await pool.complete_many([ask(agent) for agent in range(20)])
