"""A real HTTP server that speaks like SGLang and like an OpenAI-style endpoint, and misbehaves when told to.

Its "model" answers `to <whatever stands behind asked= in the prompt>`, so that a test sees whose answer came to whom.
"""

import asyncio
import json
import re
from collections import deque
from typing import Any, Self

from aiohttp import web

ASKED = re.compile(r"asked=([\w-]+);")
SPECIAL = {"<s>": 1, "<|im_start|>": 2, "<|im_end|>": 3}
_PIECES = re.compile("|".join(map(re.escape, SPECIAL)) + "|.", re.DOTALL)


class Server:
    """`async with Server("429", "cut") as server:` misbehaves twice, then behaves."""

    def __init__(
        self, *faults: str, always: str = "", system: bool = True, bos: bool = False, info: dict[str, Any] | None = None
    ) -> None:
        """`always` is what it does when no fault is left; `system`: its template knows a system role; `bos`: its
        tokenizer puts <s> first by itself; `info`: what it says about itself.
        """
        self.faults = deque(faults)
        self.always = always
        self.system = system
        self.bos = bos
        self.info = info or {}
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.served: list[str] = []
        self.aborted: list[str] = []
        self.hung_up = 0
        self.seen: set[str] = set()
        self.url = ""
        self.host = "127.0.0.1"
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.up()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.down()

    async def up(self) -> None:
        app = web.Application(client_max_size=1 << 30)
        app.add_routes([
            web.post("/generate", self.generate), web.post("/v1/chat/completions", self.chat),
            web.get("/health", self.health), web.get("/v1/models", self.health),
            web.get("/model_info", self.model_info), web.get("/server_info", self.server_info),
            web.post("/v1/tokenize", self.tokenize), web.post("/v1/detokenize", self.detokenize),
            web.post("/abort_request", self.abort),
        ])  # fmt: skip
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self.host, self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://{self.host}:{self.port}"

    async def down(self) -> None:
        await self._runner.cleanup()

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        single = isinstance(body.get("text", body.get("input_ids", [""])[:1][0]), str | int)
        items = self._items(body, single)
        fault = self._fault()
        if any("nonsense" in item["sampling_params"].get("json_schema", "") for item in items):
            return web.json_response({"error": {"message": "bad schema"}}, status=400)
        if (failure := await self._fail(request, fault)) is not None:
            return failure
        replies = [self._reply(item, fault) for item in items]
        if body.get("stream"):
            return await self._stream(request, replies, fault)
        return web.json_response(replies[0] if single else replies)

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        fault = self._fault()
        if (failure := await self._fail(request, fault)) is not None:
            return failure
        prompt = "\n".join(m["content"] for m in body["messages"])
        model = "somebody-else-7b" if fault == "other_model" else body["model"]
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": self._say(prompt, fault)},
        }
        reply = web.json_response(
            {"id": "c", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage}
        )
        if fault == "slow":
            return await self._drip(request, json.dumps(json.loads(reply.text or "")).encode())
        return reply

    async def health(self, request: web.Request) -> web.Response:
        return web.json_response({"data": []})

    async def model_info(self, request: web.Request) -> web.Response:
        return web.json_response({"model_path": "/models/tiny", "served_model_name": "tiny"})

    async def server_info(self, request: web.Request) -> web.Response:
        return web.json_response(self.info)

    async def tokenize(self, request: web.Request) -> web.Response:
        body = await request.json()
        if "messages" not in body:
            return web.json_response({"tokens": self._encode(body["prompt"], start=self.bos)})
        if not self.system and body["messages"][0]["role"] == "system":
            return web.json_response({"error": {"message": "System role not supported"}}, status=400)
        return web.json_response({"tokens": self._encode(self._template(body["messages"]))})

    async def detokenize(self, request: web.Request) -> web.Response:
        body = await request.json()
        tokens, skip = body["tokens"], body["skip_special_tokens"]
        if tokens and isinstance(tokens[0], list):
            return web.json_response({"text": [self._decode(t, skip) for t in tokens]})
        return web.json_response({"text": self._decode(tokens, skip)})

    async def abort(self, request: web.Request) -> web.Response:
        self.aborted.append((await request.json())["rid"])
        return web.Response()

    async def _body(self, request: web.Request) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        self.bodies.append(body)
        self.headers.append(request.headers)
        return body

    def _fault(self) -> str:
        return self.faults.popleft() if self.faults else self.always

    async def _fail(self, request: web.Request, fault: str) -> web.StreamResponse | None:
        """What it does instead of answering, if anything."""
        match fault:
            case "429":
                return web.json_response(
                    {"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "0.3"}
                )
            case "429 words":
                return web.json_response({"error": {"message": "Rate limit. Please try again in 300ms."}}, status=429)
            case "500":
                return web.Response(text="Internal Server Error", status=500)
            case "503":
                return web.Response(status=503)
            case "401":
                key = request.headers.get("Authorization", "").removeprefix("Bearer ")
                return web.json_response({"error": {"message": f"Incorrect API key provided: {key}"}}, status=401)
            case "redirect":
                return web.Response(status=307, headers={"Location": "http://127.0.0.1:1/elsewhere"})
            case "hang":
                return await self._hang()
            case "cut":
                self._cut(request)
                return web.Response()
            case "not json":
                return web.Response(text="<html>Bad Gateway</html>")
            case "wrong shape":
                return web.json_response({"surprise": [1, 2, 3]})
            case "empty":
                return web.Response(body=b"")
        return None

    async def _hang(self) -> web.Response:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.hung_up += 1
            raise
        return web.Response()

    def _cut(self, request: web.Request) -> None:
        assert request.transport is not None
        request.transport.abort()

    def _items(self, body: dict[str, Any], single: bool) -> list[dict[str, Any]]:
        keys = [key for key in ("text", "input_ids", "rid", "sampling_params") if key in body]
        if single:
            return [{key: body[key] for key in keys}]
        first = body.get("text", body.get("input_ids"))
        return [{key: body[key][i] for key in keys} for i in range(len(first))]

    def _reply(self, item: dict[str, Any], fault: str) -> dict[str, Any]:
        prompt = item["text"] if "text" in item else self._decode(item["input_ids"], skip=False)
        head = prompt[:20]
        meta = {
            "id": "somebody else's" if fault == "other request" else item.get("rid", "none"),
            "finish_reason": {"type": "stop"}, "prompt_tokens": 100, "completion_tokens": 10,
            "cached_tokens": 40 if head in self.seen else 0,
        }  # fmt: skip
        self.seen.add(head)
        if fault == "ended":
            meta["finish_reason"] = {"type": "abort", "message": "shutting down", "status_code": 503}
        return {"text": self._say(prompt, fault), "meta_info": meta}

    def _say(self, prompt: str, fault: str) -> str:
        found = ASKED.findall(prompt)
        asked = found[-1] if found else "nothing"
        if fault == "empty text":
            return ""
        if fault == "megabyte":
            return "x" * 1_000_000
        self.served.append(asked)
        return f"to {asked}"

    async def _stream(self, request: web.Request, replies: list[dict[str, Any]], fault: str) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        events = [self._begun(reply) for reply in replies] + list(reversed(replies))
        if fault == "cut midway":
            events = events[: len(replies) + len(replies) // 2]
        for event in events:
            await response.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            if fault == "slow":
                await asyncio.sleep(0.03)
        if fault == "cut midway":
            self._cut(request)
        await response.write(b"data: [DONE]\n\n")
        return response

    def _begun(self, reply: dict[str, Any]) -> dict[str, Any]:
        text = reply["text"][:2]
        return {"text": text, "meta_info": {**reply["meta_info"], "finish_reason": None}}

    async def _drip(self, request: web.Request, raw: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for i in range(0, len(raw), 40):
            await response.write(raw[i : i + 40])
            await asyncio.sleep(0.01)
        return response

    def _template(self, messages: list[dict[str, str]]) -> str:
        start = "<s>" if self.bos else ""
        turns = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        return f"{start}{turns}<|im_start|>assistant\n"

    def _encode(self, text: str, start: bool = False) -> list[int]:
        return [1] * start + [SPECIAL.get(piece) or ord(piece) + 10 for piece in _PIECES.findall(text)]

    def _decode(self, tokens: list[int], skip: bool) -> str:
        names = {number: "" if skip else token for token, number in SPECIAL.items()}
        return "".join(names[t] if t in names else chr(t - 10) for t in tokens)
