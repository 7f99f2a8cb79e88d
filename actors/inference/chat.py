"""From layers to what a model reads: messages, and for native endpoints the model's own chat layout.

The layout is learned by showing the template marked texts and cutting its output at the marks. What stands between
the marks is the frame; a prompt is the frame with the real texts in it. So no agent's text ever meets the template
language, and rendering costs a join.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from ethnos.actors.inference.request import Layer
from ethnos.errors import EthnosError

Message = dict[str, str]

COMMON_SPECIAL_TOKENS = frozenset(
    {
        *("<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|endoftext|>", "<|endofprompt|>"),
        *(
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
            "<|eom_id|>",
        ),
        *("<|python_tag|>", "<|finetune_right_pad_id|>", "<|header_start|>", "<|header_end|>", "<|eot|>"),
        *("<s>", "</s>", "<unk>", "<pad>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
        *("<<SYS>>", "<</SYS>>", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]", "[TOOL_RESULTS]"),
        *("<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>"),
        *("<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|end|>", "<|return|>", "<|call|>"),
        *("<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|endofturn|>", "<|pad|>"),
        *("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
        *("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"),
        *("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|SYSTEM_TOKEN|>", "<|USER_TOKEN|>"),
        *("<|CHATBOT_TOKEN|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|repo_name|>", "<|file_sep|>"),
    }
)
"""What the templates of widely used models take for their own; an engine that knows its model adds to it."""


def messages(layers: Sequence[Layer]) -> list[Message]:
    """One message per stretch of layers with the same role."""
    return [
        {"role": role, "content": sendable("\n\n".join(layer.text for layer in stretch))}
        for role, stretch in groupby(layers, key=lambda layer: layer.role)
    ]


def sendable(text: str) -> str:
    """With halves of surrogate pairs, which no encoding takes, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")


def without_system(given: Sequence[Message]) -> list[Message]:
    """The same said by the user alone, for templates that know no system."""
    text = "\n\n".join(m["content"] for m in given)
    return [{"role": "user", "content": text}]


@dataclass(frozen=True, slots=True)
class Frame:
    """What a template writes around and between messages of certain roles."""

    pieces: tuple[str, ...]
    fold: bool = False
    """The template knows no system: everything goes into one user message."""

    def render(self, given: Sequence[Message]) -> str:
        told = without_system(given) if self.fold else given
        parts = [self.pieces[0]]
        for message, piece in zip(told, self.pieces[1:], strict=True):
            parts += (message["content"], piece)
        return "".join(parts)


def marked(roles: Sequence[str]) -> list[Message]:
    """Messages whose texts are found again in a template's output."""
    return [{"role": role, "content": f"ETHNOS{i}TEXT"} for i, role in enumerate(roles)]


def cut(rendered: str, roles: Sequence[str], fold: bool = False) -> Frame | None:
    """The frame around marked messages; None if a mark is not there exactly once, in order."""
    pieces, rest = [], rendered
    for i in range(len(roles)):
        if rest.count(mark := f"ETHNOS{i}TEXT") != 1:
            return None
        piece, _, rest = rest.partition(mark)
        pieces.append(piece)
    return Frame((*pieces, rest), fold)


def plain(roles: Sequence[str]) -> Frame:
    """A layout for models without a template."""
    starts = [f"### {role.capitalize()}\n" for role in roles]
    return Frame((starts[0], *(f"\n\n{s}" for s in starts[1:]), "\n\n### Assistant\n"))


def template_frame(path: Path, roles: Sequence[str]) -> Frame:
    """The frame of a Jinja chat template in a file, run in a sandbox. Raises EthnosError if it cannot be had."""
    render = _compiled(path)
    text = render(marked(roles))
    if text is not None and (frame := cut(text, roles)):
        return frame
    text = render(marked(["user"]))
    if text is not None and (frame := cut(text, ["user"], fold=True)):
        return frame
    raise EthnosError(f"the chat template {path} does not show the texts of its messages")


def _compiled(path: Path) -> Callable[[list[Message]], str | None]:
    """A function that renders messages, or gives None where the template refuses them."""
    try:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise EthnosError("a chat template file needs Jinja: pip install 'ethnos[sglang]'") from None
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda _: "today"
    try:
        template = environment.from_string(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, jinja2.TemplateError) as error:
        raise EthnosError(f"cannot read the chat template {path}: {error}") from None

    def render(given: list[Message]) -> str | None:
        values: dict[str, Any] = {"messages": given, "add_generation_prompt": True, "bos_token": "", "eos_token": ""}
        try:
            return template.render(values)
        except (jinja2.TemplateError, TypeError, ValueError):
            return None

    return render


def _refuse(message: str) -> None:
    raise ValueError(message)
