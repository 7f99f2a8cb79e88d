"""Any endpoint in the style of OpenAI's chat completions, through the `openai` package.

What such an endpoint does with a seed is its own affair, and it may change under the same name: what makes a run
repeatable is its record.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ethnos.actors.inference import chat
from ethnos.actors.inference.engines.base import (
    Answer,
    Broken,
    Call,
    Deliver,
    Prices,
    Traits,
    Trouble,
    Unreachable,
    trouble,
)
from ethnos.actors.inference.engines.completion import body, read
from ethnos.actors.inference.engines.http import decode, error_text, redact, without_key
from ethnos.actors.inference.request import Request
from ethnos.engines import OpenAISpec
from ethnos.errors import EthnosError

if TYPE_CHECKING:
    import openai


class OpenAIEngine:
    """One model at one endpoint."""

    def __init__(self, spec: OpenAISpec, name: str) -> None:
        self.name = name
        self.model = spec.model
        self.prices = Prices.of(spec.prices)
        most = spec.max_in_flight or 256
        self.traits = Traits(1, min(16, most), most)
        self._spec = spec
        self._client: openai.AsyncOpenAI | None = None

    async def start(self) -> None:
        """Nothing is asked of the endpoint: some count every question."""
        self._open()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def healthy(self) -> bool:
        """Whether it answers at all; that it may have no list of models is no illness."""
        import openai

        try:
            await self._open().models.list(timeout=20.0)
        except openai.APIStatusError as error:
            return error.status_code < 500
        except openai.APIError:
            return False
        return True

    async def revive(self) -> None:
        if not await self.healthy():
            raise Unreachable("the endpoint does not answer")

    def special_tokens(self) -> frozenset[str]:
        return chat.COMMON_SPECIAL_TOKENS

    async def answer(self, calls: Sequence[Call], deliver: Deliver) -> None:
        for call in calls:
            deliver(call.rid, await self._ask(call.request))

    async def warm(self, request: Request) -> Answer:
        return await self._ask(request)

    async def abort(self, rids: Sequence[str]) -> None:
        """Its connection is closed with the call; there is no more one can do."""

    async def _ask(self, request: Request) -> Answer:
        import openai

        asked = self._body(request)
        try:
            raw = await self._open().chat.completions.with_raw_response.create(
                model=self._spec.model, messages=[], extra_body=asked
            )
        except openai.APIStatusError as error:
            raise self._trouble(error) from None
        except openai.APITimeoutError:
            raise Unreachable("cannot connect in time") from None
        except openai.APIConnectionError as error:
            raise _connection(error) from None
        return self._checked(read(decode(without_key(raw.content, self._key()))))

    def _trouble(self, error: "openai.APIStatusError") -> Trouble:
        text = error_text(error.response.content) or error.message
        return trouble(error.status_code, redact(text, self._key()), error.response.headers)

    def _checked(self, answer: Answer) -> Answer:
        """Whether the model that answered is the one we asked."""
        asked, said = self._spec.model, answer.model
        if said and asked not in said and said not in asked:
            if not self._spec.any_model:
                raise Broken(f"{said} answered instead of {asked}")
            answer.detail["asked_model"] = asked
        return answer

    def _body(self, request: Request) -> dict[str, Any]:
        spec = self._spec
        asked = {"model": spec.model, **body(request, spec.structured, spec.strict)}
        asked[spec.max_tokens_key] = asked.pop("max_tokens")
        for key in spec.omit:
            asked.pop(key, None)
        return {**asked, **spec.extra}

    def _key(self) -> str | None:
        return os.environ.get(self._spec.api_key_env) if self._spec.api_key_env else None

    def _open(self) -> "openai.AsyncOpenAI":
        if self._client is None:
            self._client = self._connect()
        return self._client

    def _connect(self) -> "openai.AsyncOpenAI":
        try:
            import openai
        except ImportError:
            raise EthnosError("engines of kind openai need the client: pip install 'ethnos[openai]'") from None
        key = self._key()
        if self._spec.api_key_env and not key:
            raise EthnosError(f"engine {self.name}: the environment variable {self._spec.api_key_env} is not set")
        timeout = openai.Timeout(None, connect=10.0)
        return openai.AsyncOpenAI(base_url=self._spec.base_url, api_key=key or "none", max_retries=0, timeout=timeout)


def _connection(error: "openai.APIConnectionError") -> Trouble:
    """Whether nobody is there, or somebody hung up."""
    cause = type(error.__cause__).__name__
    if "Connect" in cause:
        return Unreachable(f"cannot connect: {cause}")
    return Broken(f"no reply: {cause}")
