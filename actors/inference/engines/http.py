"""A well-kept HTTP client for engines: bounded replies, no redirects, no proxies, no secrets in what it says."""

import asyncio
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from ethnos.actors.inference.engines.base import Broken, Denied, Trouble, Unreachable, trouble

MAX_BODY = 64 << 20
"""Bytes of a reply that are read; a batch of the longest answers is far below."""
MAX_LINE = 8 << 20
MAX_ERROR = 64 << 10
_KEY_LIKE = re.compile(r"\b(sk|key|hf|gsk|xai)[-_][\w*.-]{6,}")


class Http:
    """Talks JSON with one server."""

    def __init__(self, url: str, key_env: str | None = None, key: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._key_env = key_env
        self._key = key
        self._session: aiohttp.ClientSession | None = None

    async def get(self, path: str, timeout: float = 30.0) -> Any:
        async with _within(timeout):
            return decode(self._without_key(await self._whole("GET", path, None)))

    async def text(self, path: str, timeout: float = 30.0) -> str:
        async with _within(timeout):
            return (await self._whole("GET", path, None)).decode("utf-8", "replace")

    async def post(self, path: str, body: Any, timeout: float | None = None) -> Any:
        """Without a timeout the caller has to have one."""
        async with _within(timeout):
            return decode(self._without_key(await self._whole("POST", path, body)))

    async def tell(self, path: str, body: Any, timeout: float) -> None:
        """Post something whose reply has nothing to say."""
        async with _within(timeout):
            await self._whole("POST", path, body)

    async def events(self, path: str, body: Any) -> AsyncIterator[Any]:
        """The objects of a server-sent event stream."""
        async with await self._open("POST", path, body) as response:
            async for line in _lines(response.content):
                if line.startswith(b"data:") and line != b"data: [DONE]":
                    yield decode(self._without_key(line[5:]))

    async def ok(self, path: str, timeout: float) -> bool:
        """Whether a GET answers with success in time."""
        try:
            async with _within(timeout):
                await self._whole("GET", path, None)
        except Trouble:
            return False
        return True

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def redact(self, text: str) -> str:
        """Without the key we hold, and without what looks like one."""
        return redact(text, self._secret())

    def _without_key(self, raw: bytes) -> bytes:
        return without_key(raw, self._secret())

    async def _whole(self, method: str, path: str, body: Any) -> bytes:
        async with await self._open(method, path, body) as response:
            try:
                return await _read(response.content, MAX_BODY)
            except (aiohttp.ClientError, OSError) as error:
                raise Broken(f"the reply broke off: {type(error).__name__}") from None

    async def _open(self, method: str, path: str, body: Any) -> "_Response":
        data = None if body is None else msgspec.json.encode(body)
        try:
            response = await self._client().request(
                method, self.url + path, data=data, headers=self._headers(), allow_redirects=False
            )
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(f"cannot connect: {type(error).__name__}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(f"no reply: {type(error).__name__}") from None
        if response.status >= 300:
            async with _Response(response) as failed:
                raise await self._refusal(failed)
        return _Response(response)

    async def _refusal(self, response: "_Response") -> Trouble:
        try:
            raw = await _read(response.content, MAX_ERROR)
        except (aiohttp.ClientError, OSError, Broken):
            raw = b""
        return trouble(response.status, self.redact(error_text(raw)), response.headers)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=30, enable_cleanup_closed=False)
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False)
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json"}
        if self._key_env and self._secret() is None:
            raise Denied(f"the environment variable {self._key_env} is not set")
        if key := self._secret():
            headers["Authorization"] = f"Bearer {key}"
        return headers

    def _secret(self) -> str | None:
        return self._key or (os.environ.get(self._key_env) or None if self._key_env else None)


@asynccontextmanager
async def _within(seconds: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unreachable(f"no reply within {seconds:g} s") from None


class _Response:
    """A response that closes its connection unless it was read to its end."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = dict(response.headers)
        self.content = response.content

    async def __aenter__(self) -> "_Response":
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


async def _read(content: aiohttp.StreamReader, most: int) -> bytes:
    parts, size = [], 0
    async for part in content.iter_any():
        parts.append(part)
        size += len(part)
        if size > most:
            raise Broken(f"the reply is longer than {most} bytes")
    return b"".join(parts)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    begun: list[bytes] = []
    size = 0
    try:
        async for part in content.iter_any():
            *ends, rest = part.split(b"\n")
            for end in ends:
                yield b"".join((*begun, end)).rstrip(b"\r")
                begun, size = [], 0
            begun.append(rest)
            size += len(rest)
            if size > MAX_LINE:
                raise Broken(f"a line of the reply is longer than {MAX_LINE} bytes")
    except (aiohttp.ClientError, OSError) as error:
        raise Broken(f"the stream broke off: {type(error).__name__}") from None


def decode(raw: bytes) -> Any:
    """The JSON of a reply. Raises Broken if it is none."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Broken(f"the reply is no JSON ({len(raw)} bytes)") from None


def without_key(raw: bytes, key: str | None) -> bytes:
    """A reply without our key: whoever repeats it would put it on the record."""
    return raw.replace(key.encode(), b"[key]") if key else raw


def redact(text: str, key: str | None) -> str:
    """Without the key, and without what looks like one."""
    return _KEY_LIKE.sub("[key]", text.replace(key, "[key]") if key else text)


def error_text(raw: bytes) -> str:
    """The message in an error body of whatever shape."""
    text = raw.decode("utf-8", "replace")
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return text
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict):
        inner = inner.get("message") or inner.get("detail") or inner
    return inner if isinstance(inner, str) else text
