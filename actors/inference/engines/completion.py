"""What a chat completions endpoint is asked and what it says: shared by every engine that speaks that way."""

from typing import Any, Literal

from ethnos.actors.inference.chat import messages
from ethnos.actors.inference.engines.base import Answer, Broken, narrow_seed
from ethnos.actors.inference.request import Request

Structured = Literal["json_schema", "json_object", "none"]


def body(request: Request, structured: Structured = "json_schema", strict: bool = False) -> dict[str, Any]:
    """The request's body, without the model's name."""
    sampling = request.sampling
    asked: dict[str, Any] = {
        "messages": messages(request.layers),
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.seed is not None:
        asked["seed"] = narrow_seed(sampling.seed)
    if (form := _response_format(request.schema, structured, strict)) is not None:
        asked["response_format"] = form
    return asked


def _response_format(schema: dict[str, Any] | None, structured: Structured, strict: bool) -> dict[str, Any] | None:
    if schema is None or structured == "none":
        return None
    if structured == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "decision", "schema": schema, "strict": strict}}


def read(reply: Any) -> Answer:
    """An answer out of a chat completion. Raises Broken if it is none."""
    choice = _first(reply)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise Broken("the reply has no message")
    text = message.get("content")
    detail = {key: message[key] for key in ("refusal",) if message.get(key)}
    usage = reply.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Answer(
        text=text if isinstance(text, str) else "",
        finish=str(choice.get("finish_reason") or ""),
        model=str(reply.get("model") or ""),
        prompt_tokens=count(usage.get("prompt_tokens")),
        cached_tokens=cached(usage),
        completion_tokens=count(usage.get("completion_tokens")),
        detail=detail,
    )


def cached(usage: dict[str, Any]) -> int:
    """Cached prompt tokens, under the names that endpoints give them."""
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict) and details.get("cached_tokens"):
        return count(details["cached_tokens"])
    return count(usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens"))


def count(value: Any) -> int:
    """A number of tokens, or 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0


def _first(reply: Any) -> dict[str, Any]:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Broken("the reply is no chat completion")
    return choices[0]
