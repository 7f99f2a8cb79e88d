"""SGLang through its native API.

A call is one POST to /generate with many prompts. The reply is read as a stream in which each request's end comes as
soon as it is there, so nobody waits for the slowest of a batch. What is peculiar to SGLang and dealt with here:

- One schema that it cannot take fails the whole batch: then each request is sent alone.
- `sampling_seed` is only kept by a server that runs deterministically (`--enable-deterministic-inference`); others
  ignore it without a word, so it is not sent to them. A deterministic server dies of `min_p`: it is refused here.
- Even with seeds an answer may change with its batch. What makes a run repeatable is its record, not its seeds.
- A request is cancelled by its rid, and the server takes the rid for a prefix: rids end in a dot.
- With data parallelism each copy has a prefix cache of its own: each is an engine of its own to the pool.
- An sglang-router takes one request a call and knows neither rids nor cancelling: the connection is closed instead.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from ethnos.actors.inference import chat
from ethnos.actors.inference.chat import Frame, Message, messages
from ethnos.actors.inference.engines.base import (
    Answer,
    Broken,
    Call,
    Deliver,
    Overloaded,
    Prices,
    Refused,
    Traits,
    Trouble,
    Unreachable,
    narrow_seed,
    shorten,
    trouble,
)
from ethnos.actors.inference.engines.completion import count
from ethnos.actors.inference.engines.http import Http
from ethnos.actors.inference.engines.managed import Serve, Server, serve_here
from ethnos.actors.inference.request import Request, Sampling
from ethnos.engines import SglangSpec
from ethnos.errors import EthnosError

START_TIMEOUT = 30.0
ONE_BY_ONE = 16
"""Requests sent alone at one time, after their batch was refused."""


class SglangEngine:
    """One copy of a model behind a server's URL."""

    def __init__(self, spec: SglangSpec, name: str, rank: int | None = None, server: Server | None = None) -> None:
        self.name = name
        self.model = ""
        self.prices = Prices.of(spec.prices)
        self.special: frozenset[str] = frozenset()
        self.deterministic = False
        self._spec = spec
        self._rank = rank
        self._server = server
        self._http = Http(spec.url or "http://127.0.0.1", spec.api_key_env)
        self._frames: dict[tuple[str, ...], Frame | None] = {}
        self._incremental = False
        self._prioritises = False
        self._alone_as: dict[str, str] = {}
        """The rids of requests that are sent again, alone."""
        self._aborts = asyncio.Semaphore(ONE_BY_ONE)

    @property
    def traits(self) -> Traits:
        most = self._spec.max_in_flight or 1024
        batch = 1 if self._spec.router else self._spec.batch
        return Traits(batch, min(256, most), most, warms=self._spec.warm_up and not self._spec.router)

    async def start(self) -> None:
        """Learn the model, how the server runs, and the model's chat layout."""
        if self._server is not None:
            await self._server.start()
            self._http.url = self._server.url
        if self._spec.router:
            await self._meet_router()
        else:
            await self._meet_server()

    async def close(self) -> None:
        await self._http.close()
        if self._server is not None:
            await self._server.stop()

    async def healthy(self) -> bool:
        """A server that is at work, or that generates one token, is."""
        if self._server is not None and not self._server.alive:
            return False
        return await self._http.ok("/health", timeout=25.0)

    async def revive(self) -> None:
        if self._server is not None:
            await self._server.restart()

    def special_tokens(self) -> frozenset[str]:
        return chat.COMMON_SPECIAL_TOKENS | self.special

    async def answer(self, calls: Sequence[Call], deliver: Deliver) -> None:
        prompts = [await self._prompt(call.request) for call in calls]
        if self._spec.router:
            await self._alone(calls[0], prompts[0], deliver)
            return
        open_ = {call.rid: (call, prompt) for call, prompt in zip(calls, prompts, strict=True)}
        try:
            await self._together(open_, deliver)
        except Refused:
            if len(calls) == 1:
                raise
            await self._one_by_one(list(open_.values()), deliver)

    async def warm(self, request: Request) -> Answer:
        head = Request(request.tick, request.agent_id, request.call, request.shared, None, Sampling(0.0, 1.0, 1))
        body = self._single(Call("", head), await self._prompt(head))
        body.pop("rid", None)
        return _answer(await self._http.post("/generate", body), self.model)

    async def abort(self, rids: Sequence[str]) -> None:
        if not self._spec.router:
            await asyncio.gather(*(self._abort(self._alone_as.get(rid, rid)) for rid in rids))

    async def metrics(self) -> dict[str, float]:
        """The server's own figures, if it was started with `--enable-metrics`."""
        return parse_metrics(await self._http.text("/metrics"))

    async def _abort(self, rid: str) -> None:
        async with self._aborts:
            await self._http.tell("/abort_request", {"rid": rid}, timeout=5.0)

    async def _together(self, open_: dict[str, tuple[Call, Any]], deliver: Deliver) -> None:
        """One call for all; what is delivered leaves `open_`. Raises Refused if the fault is one request's."""
        body = self._body([call for call, _ in open_.values()], [prompt for _, prompt in open_.values()])
        texts: dict[str, list[str]] = {}
        refusal: Refused | None = None
        async for event in self._http.events("/generate", {**body, "stream": True}):
            rid, ended = self._hear(event, texts)
            if ended is None:
                continue
            result = _result(ended, "".join(texts.pop(rid)), self.model)
            if isinstance(result, Refused):
                refusal = result
                continue
            open_.pop(rid, None)
            deliver(rid, result)
        if refusal is not None:
            raise refusal

    def _hear(self, event: Any, texts: dict[str, list[str]]) -> tuple[str, dict[str, Any] | None]:
        """Note one event of a stream: whose it is, and it itself if that request has ended."""
        if not isinstance(event, dict):
            raise Broken("an event of the stream is no object")
        if (error := event.get("error")) is not None:
            raise _told(error, self._http)
        meta = event.get("meta_info")
        rid = meta.get("id") if isinstance(meta, dict) else None
        if not isinstance(rid, str) or not isinstance(text := event.get("text"), str | None):
            raise Broken("an event of the stream names no request")
        kept = texts.setdefault(rid, [])
        if not self._incremental:
            kept.clear()
        kept.append(text or "")
        return rid, event if meta and meta.get("finish_reason") else None

    async def _one_by_one(self, left: list[tuple[Call, Any]], deliver: Deliver) -> None:
        """The batch was refused: find out for whose fault, and serve the others."""
        await self._try_abort([call.rid for call, _ in left])
        places = asyncio.Semaphore(ONE_BY_ONE)

        async def one(call: Call, prompt: Any) -> None:
            async with places:
                try:
                    await self._alone(call, prompt, deliver)
                except Trouble as told:
                    deliver(call.rid, told)

        async with asyncio.TaskGroup() as group:
            for call, prompt in left:
                group.create_task(one(call, prompt))

    async def _try_abort(self, rids: Sequence[str]) -> None:
        """What was refused may still run in part."""
        try:
            await self.abort(rids)
        except Trouble:
            return

    async def _alone(self, call: Call, prompt: Any, deliver: Deliver) -> None:
        """One request in a call of its own, under another rid: the batch's may still be known to the server."""
        body = self._single(call, prompt)
        self._alone_as[call.rid] = body.get("rid", "")
        try:
            reply = await self._http.post("/generate", body)
        except asyncio.CancelledError:
            if "rid" in body:
                await asyncio.shield(self._try_abort([call.rid]))
            raise
        finally:
            del self._alone_as[call.rid]
        told = self._only(reply, body.get("rid"))
        if isinstance(told, Trouble):
            raise told
        deliver(call.rid, told)

    def _single(self, call: Call, prompt: str | list[int]) -> dict[str, Any]:
        params = self._sampling(call.request)
        body: dict[str, Any] = {"sampling_params": params, "stream": False, "rid": f"{call.rid}1."}
        body["text" if isinstance(prompt, str) else "input_ids"] = prompt
        if self._spec.router:
            del body["rid"]
        if self._rank is not None:
            body["routed_dp_rank"] = self._rank
        return body

    def _only(self, reply: Any, rid: str | None) -> Answer | Trouble:
        """The one answer of a call for one request, if it belongs to it."""
        if isinstance(reply, list) and len(reply) == 1:
            reply = reply[0]
        if rid is not None and _rid(reply) != rid:
            raise Broken(f"the reply belongs to another request ({shorten(str(_rid(reply)), 40)})")
        return _result(reply, _text(reply), self.model)

    def _body(self, calls: Sequence[Call], prompts: Sequence[str | list[int]]) -> dict[str, Any]:
        key = "input_ids" if isinstance(prompts[0], list) else "text"
        body: dict[str, Any] = {
            key: list(prompts),
            "rid": [call.rid for call in calls],
            "sampling_params": [self._sampling(call.request) for call in calls],
        }
        if self._rank is not None:
            body["routed_dp_rank"] = self._rank
        if self._prioritises:
            body["priority"] = max(call.request.priority for call in calls)
        return body

    def _sampling(self, request: Request) -> dict[str, Any]:
        wanted = request.sampling
        params: dict[str, Any] = {
            **self._spec.sampling,
            "temperature": wanted.temperature,
            "top_p": wanted.top_p,
            "max_new_tokens": wanted.max_tokens,
        }
        if not self._spec.router:
            params["stream_interval"] = max(wanted.max_tokens, 2)
        if request.schema is not None:
            params["json_schema"] = msgspec.json.encode(request.schema).decode()
        if self.deterministic and wanted.seed is not None:
            params["sampling_seed"] = narrow_seed(wanted.seed)
        return params

    async def _meet_router(self) -> None:
        if not await self._http.ok("/health", START_TIMEOUT):
            raise Unreachable("the router does not answer")

    async def _meet_server(self) -> None:
        model = await self._http.get("/model_info", START_TIMEOUT)
        server = await self._http.get("/server_info", START_TIMEOUT)
        if not isinstance(model, dict) or not isinstance(server, dict):
            raise Broken("this is no SGLang server")
        self.model = str(model.get("served_model_name") or model.get("model_path") or "")
        self.deterministic = bool(server.get("enable_deterministic_inference"))
        self._incremental = bool(server.get("incremental_streaming_output"))
        self._prioritises = bool(server.get("enable_priority_scheduling"))
        if self.deterministic and self._spec.sampling.get("min_p"):
            raise EthnosError(f"engine {self.name}: min_p makes a deterministic SGLang server crash")
        self._frames.clear()
        await self._frame(("system", "user"))

    async def _prompt(self, request: Request) -> str | list[int]:
        """The text for a request, or its tokens where the model's layout does not allow to build the text here."""
        given = messages(request.layers)
        roles = tuple(m["role"] for m in given)
        frame = await self._frame(roles)
        if frame is None:
            return await self._tokens(given)
        return frame.render(given)

    async def _frame(self, roles: tuple[str, ...]) -> Frame | None:
        if roles not in self._frames:
            self._frames[roles] = await self._find_frame(roles)
        return self._frames[roles]

    async def _find_frame(self, roles: tuple[str, ...]) -> Frame | None:
        if self._spec.chat_template is not None:
            return chat.template_frame(self._spec.chat_template, roles)
        if self._spec.layout == "plain" or self._spec.router:
            return chat.plain(roles)
        try:
            return await self._learn(chat.marked(roles), roles, fold=False)
        except (Refused, Broken):
            pass
        try:
            return await self._learn(chat.marked(["user"]), ("user",), fold=True)
        except (Refused, Broken):
            return chat.plain(roles)

    async def _learn(self, given: list[Message], roles: tuple[str, ...], fold: bool) -> Frame | None:
        """Read the frame off what the server makes of marked messages; None if it cannot be built from text."""
        ids = await self._tokens(given)
        text = await self._text_of(ids)
        self.special |= await self._special_among(ids)
        start = await self._start_tokens()
        if start and ids[: len(start)] == start:
            text = text.removeprefix(await self._text_of(start))
        frame = chat.cut(text, roles, fold)
        if frame is None or await self._encode(text) != ids:
            return None if not fold else frame
        return frame

    async def _tokens(self, given: list[Message]) -> list[int]:
        reply = await self._http.post("/v1/tokenize", {"messages": given}, START_TIMEOUT)
        return _ints(reply, "tokens")

    async def _encode(self, text: str) -> list[int]:
        """As /generate does it, with whatever the tokenizer puts first."""
        return _ints(await self._http.post("/v1/tokenize", {"prompt": text}, START_TIMEOUT), "tokens")

    async def _start_tokens(self) -> list[int]:
        return await self._encode("")

    async def _text_of(self, ids: list[int]) -> str:
        body = {"tokens": ids, "skip_special_tokens": False}
        reply = await self._http.post("/v1/detokenize", body, START_TIMEOUT)
        if not isinstance(reply, dict) or not isinstance(text := reply.get("text"), str):
            raise Broken("the server does not turn tokens into text")
        return text

    async def _special_among(self, ids: list[int]) -> frozenset[str]:
        """Tokens that vanish where special tokens are skipped."""
        each = [[i] for i in dict.fromkeys(ids)]
        shown = await self._texts_of(each, skip=False)
        skipped = await self._texts_of(each, skip=True)
        return frozenset(a.strip() for a, b in zip(shown, skipped, strict=True) if a.strip() and not b)

    async def _texts_of(self, each: list[list[int]], skip: bool) -> list[str]:
        body = {"tokens": each, "skip_special_tokens": skip}
        reply = await self._http.post("/v1/detokenize", body, START_TIMEOUT)
        texts = reply.get("text") if isinstance(reply, dict) else None
        if not isinstance(texts, list) or len(texts) != len(each):
            raise Broken("the server does not turn tokens into texts")
        return [str(t) for t in texts]


def engines(spec: SglangSpec, name: str, serve: Serve = serve_here) -> list[SglangEngine]:
    """An engine for each copy of the model behind one server."""
    server = None if spec.managed is None else serve(spec)
    if spec.copies == 1 or spec.router:
        return [SglangEngine(spec, name, None, server)]
    return [SglangEngine(spec, f"{name}.{rank}", rank, server) for rank in range(spec.copies)]


def parse_metrics(text: str) -> dict[str, float]:
    """Prometheus text as numbers, summed over labels."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ") if "{" not in line else _labelled(line)
        if name and not name.startswith("#"):
            try:
                found[name] = found.get(name, 0.0) + float(value.split()[0])
            except (ValueError, IndexError):
                continue
    return found


def _labelled(line: str) -> tuple[str, str, str]:
    return line.partition("{")[0], "", line.rpartition("}")[2].strip()


def _ints(reply: Any, key: str) -> list[int]:
    ids = reply.get(key) if isinstance(reply, dict) else None
    if not isinstance(ids, list) or not all(isinstance(i, int) for i in ids):
        raise Broken("the server does not tokenize")
    return ids


def _told(error: Any, http: Http) -> Trouble:
    """The trouble that an error in a stream stands for."""
    code = error.get("code") if isinstance(error, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return trouble(code if isinstance(code, int) else 400, http.redact(str(message)), {})


def _rid(reply: Any) -> Any:
    meta = reply.get("meta_info") if isinstance(reply, dict) else None
    return meta.get("id") if isinstance(meta, dict) else None


def _text(reply: Any) -> str:
    text = reply.get("text") if isinstance(reply, dict) else None
    if not isinstance(text, str):
        raise Broken("the reply has no text")
    return text


def _result(reply: Any, text: str, model: str) -> Answer | Trouble:
    """An answer, or why a request was ended without one."""
    reason = reply["meta_info"].get("finish_reason") if isinstance(reply.get("meta_info"), dict) else None
    if isinstance(reason, dict) and reason.get("type") == "abort":
        status = reason.get("status_code")
        message = shorten(str(reason.get("message") or "ended by the server"))
        return trouble(status, message, {}) if isinstance(status, int) else Overloaded(message)
    return _answer({**reply, "text": text}, model)


def _answer(reply: Any, model: str) -> Answer:
    text = _text(reply)
    meta = reply.get("meta_info")
    meta = meta if isinstance(meta, dict) else {}
    reason = meta.get("finish_reason")
    return Answer(
        text=text,
        finish=str(reason.get("type", "")) if isinstance(reason, dict) else str(reason or ""),
        model=model,
        prompt_tokens=count(meta.get("prompt_tokens")),
        cached_tokens=count(meta.get("cached_tokens")),
        completion_tokens=count(meta.get("completion_tokens")),
    )
