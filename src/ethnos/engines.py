"""How a society file names its engines."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class PriceTable(_Spec):
    """Money per million tokens, in whatever currency the budget is in."""

    prompt: float = Field(default=0.0, ge=0)
    cached: float | None = Field(default=None, ge=0)
    """Prompt tokens that the engine had cached; left out, they cost what the others do."""
    completion: float = Field(default=0.0, ge=0)


class _EngineSpec(_Spec):
    name: str = Field(default="", pattern=r"^[A-Za-z0-9_.-]{0,40}$")
    """Its name in the record; left out, its kind and number."""
    prices: PriceTable = PriceTable()
    max_in_flight: int | None = Field(default=None, ge=1, le=100_000)
    """Most requests at the engine at one time. How many it takes well is learned below that."""

    def check_secrets(self, *names: str | None) -> None:
        """Names of environment variables, never what is in them."""
        if any(n is not None and not _ENV_NAME.fullmatch(n) for n in names):
            raise ValueError("api_key_env is the name of an environment variable, not the key itself")

    def check_url(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the URL has to start with http:// or https:// and a host")
        if parts.username or parts.password:
            raise ValueError("no user or password in a URL; name an environment variable with api_key_env")


class ManagedSglang(_Spec):
    """An SGLang server that Ethnos starts itself, from an environment of its own."""

    model_path: str = Field(min_length=1)
    python: str = "python3"
    """The Python executable of the environment in which SGLang is installed."""
    tp: int = Field(default=1, ge=1, le=1024)
    """Tensor parallelism: GPUs that one copy of the model is spread over."""
    dp: int = Field(default=1, ge=1, le=1024)
    """Data parallelism: copies of the model."""
    num_gpus: float | None = Field(default=None, ge=0)
    """GPUs of one node that Ray sets aside for it; left out: tp times dp. 0 to start it wherever there is room."""
    resources: dict[str, float] = Field(default_factory=dict)
    """What else of Ray's (custom) resources its node must have free, such as `{fast_disk: 1}`."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels that its node must have, such as `{ray.io/accelerator-type: H100}`."""
    host: str = "127.0.0.1"
    """Where it listens. On a cluster, left as it is: at its node's own address, where the society can reach it."""
    port: int = Field(default=0, ge=0, le=65_535)
    """0: one that is free."""
    deterministic: bool = False
    """Let the server keep seeds (`--enable-deterministic-inference`), at a cost in speed."""
    args: list[str] = Field(default_factory=list)
    """What else `python -m sglang.launch_server` gets."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables for it. No secrets here: the environment of Ethnos reaches it anyway."""
    start_timeout_s: float = Field(default=1800.0, gt=0)

    @property
    def gpus(self) -> float:
        return float(self.tp * self.dp) if self.num_gpus is None else self.num_gpus


class SglangSpec(_EngineSpec):
    """SGLang, through its native API: batches, cancelling, cached tokens."""

    kind: Literal["sglang"] = "sglang"
    url: str | None = None
    """Of a server that runs already."""
    managed: ManagedSglang | None = None
    """Or of one to start."""
    api_key_env: str | None = None
    dp: int = Field(default=1, ge=1, le=1024)
    """Copies of the model behind `url` (`--dp-size`); each has a prefix cache of its own."""
    router: bool = False
    """`url` is an sglang-router: one request a call, no cancelling."""
    warm_up: bool = True
    """Send each new shared beginning once before the wave: inside a batch SGLang shares nothing."""
    batch: int = Field(default=128, ge=1, le=128)
    """Most requests in one call. Above 128 waiting SGLang stops looking for equal beginnings."""
    layout: Literal["auto", "plain"] = "auto"
    """auto: the model's own chat template, asked of the server."""
    chat_template: Path | None = None
    """A Jinja file to take instead."""
    sampling: dict[str, float] = Field(default_factory=dict)
    """More sampling parameters, such as top_k or repetition_penalty."""

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.url is None) == (self.managed is None):
            raise ValueError("give either the url of a running server or what to start (managed)")
        if self.url is not None:
            self.check_url(self.url)
        self.check_secrets(self.api_key_env)
        if self.managed is not None and self.managed.deterministic and self.sampling.get("min_p"):
            raise ValueError("min_p makes a deterministic SGLang server crash; leave one of them out")
        return self

    @property
    def copies(self) -> int:
        return self.dp if self.managed is None else self.managed.dp


class OpenAISpec(_EngineSpec):
    """Any endpoint in the style of OpenAI's chat completions: vLLM, Ollama, llama.cpp, SGLang, hosted ones."""

    kind: Literal["openai"] = "openai"
    base_url: str = "https://api.openai.com/v1"
    model: str = Field(min_length=1)
    api_key_env: str | None = "OPENAI_API_KEY"
    """The environment variable with the key; null where none is needed."""
    structured: Literal["json_schema", "json_object", "none"] = "json_schema"
    """How much of a schema the endpoint can be held to."""
    strict: bool = False
    """Ask for OpenAI's strict schemas (every property required, none besides)."""
    max_tokens_key: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    omit: list[Literal["temperature", "top_p", "seed"]] = Field(default_factory=list)
    """Sampling parameters that the model refuses."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """What else goes into each request's body."""
    any_model: bool = True
    """Take an answer that names another model than was asked for (it is recorded); else it counts as trouble."""

    @model_validator(mode="after")
    def _place(self) -> Self:
        self.check_url(self.base_url)
        self.check_secrets(self.api_key_env)
        return self


class EmbeddedSpec(_EngineSpec):
    """A small model on this machine's CPU, through llama.cpp, in a process of its own."""

    kind: Literal["embedded"] = "embedded"
    model: str = "smollm2"
    """A name from `ethnos models list`, or the path of a GGUF file."""
    slots: int = Field(default=4, ge=1, le=64)
    """Requests it works at together. With one, equal requests in equal order get equal answers."""
    context: int = Field(default=4096, ge=256, le=1_000_000)
    """Tokens of prompt and answer, per slot."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Left out: as many as this machine has cores, less one where it has more than two. On a machine with other
    work take fewer than are free: threads that have to wait for each other are slower than one."""
    gpu_layers: int = Field(default=0, ge=0, le=10_000)

    @property
    def in_flight(self) -> int:
        return min(self.max_in_flight or self.slots, self.slots)


EngineSpec = Annotated[SglangSpec | OpenAISpec | EmbeddedSpec, Field(discriminator="kind")]
"""What can stand in a society file's list of engines."""


class BudgetSpec(_Spec):
    """What a run may spend. When it is spent no model is asked any more."""

    tokens: int | None = Field(default=None, ge=0)
    money: float | None = Field(default=None, ge=0)
    wall_s: float | None = Field(default=None, gt=0)
