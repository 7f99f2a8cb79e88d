"""Text as data: what agents wrote stays between marks that it cannot forge, and a budget is kept in tokens.

Three things are done to words before a model reads them:

- `clean` drops what has no place in any text: control characters, half characters, marks that turn the reading
  direction, invisible characters that could carry a hidden message.
- `neutralise` breaks whatever a chat template would take for its own (`<|im_start|>`, `[INST]`, `</s>`) with a
  dot after its first character: `<·|im_start|>`. One can still read it; no tokenizer takes it for the token.
- `quote` puts a text between « and », on one line. The same characters inside become ‹ and ›, so the first »
  after a « is always ours.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, takewhile

from ethnos.world.prose import Quote

BYTES_PER_TOKEN = 4
DOT = "\u00b7"
TEMPLATE_TOKENS: tuple[str, ...] = (
    *("<|", "|>", "<\uff5c", "\uff5c>", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<unk>", "<pad>", "<bos>", "<eos>"),
    *("[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "<start_of_turn>", "<end_of_turn>", "<start_of_image>"),
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
)
"""What the chat templates of widely used models take for their own. `<|` and `|>` stand for whole families."""

_NO_TEXT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e01ef]"
)
_INSIDE = str.maketrans({"\u00ab": "\u2039", "\u00bb": "\u203a", "\n": "\\n", "\t": " "})


def clean(text: str) -> str:
    """The text without characters that have no place in any."""
    return _NO_TEXT.sub("", text)


@lru_cache(maxsize=64)
def _pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    breakable = {t for t in tokens if len(t) > 1 and DOT not in t}
    longest_first = sorted(breakable, key=lambda t: (-len(t), t))
    return re.compile("|".join(map(re.escape, longest_first)) or "(?!)", re.IGNORECASE)


def neutralise(text: str, special_tokens: Iterable[str] = ()) -> str:
    """The text with everything broken that a chat template would take for its own. Harmless text stays as it is.

    `special_tokens` are a model's own, beside the common ones; those of one character, or with a dot like ours in
    them, cannot be broken and are left out. Doing it twice changes nothing more.
    """
    pattern = _pattern((*TEMPLATE_TOKENS, *special_tokens))
    text = clean(text)
    while found := pattern.search(text):
        text = text[: found.start()] + pattern.sub(lambda m: f"{m[0][0]}{DOT}{m[0][1:]}", text[found.start() :])
    return text


@lru_cache(maxsize=4096)
def quote(text: str, special_tokens: tuple[str, ...] = (), longest: int | None = None) -> str:
    """The text between « and » on one line, cut after `longest` characters with a note of how many are missing."""
    kept = text if longest is None else text[:longest]
    note = f" [{len(text) - len(kept)} more characters]" if len(kept) < len(text) else ""
    return f"\u00ab{neutralise(kept, special_tokens).translate(_INSIDE)}\u00bb{note}"


def quoting(special_tokens: Sequence[str], longest: int | None = None) -> Quote:
    """`quote` with its settings."""
    own = tuple(special_tokens)
    return lambda text: quote(text, own, longest)


def tokens(text: str) -> int:
    """How many tokens a text is taken for: a fourth of its bytes in UTF-8, rounded up.

    English prose comes out within a fifth of what common tokenizers say; digits, names and other scripts can take
    up to twice as many. No byte-level tokenizer takes more than one per byte, four times this. What a prompt
    really took is in the record.
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def fit(text: str, budget: int) -> str:
    """The text, cut to at most `budget` tokens; a quotation that is cut is closed."""
    if tokens(text) <= budget:
        return text
    room = budget * BYTES_PER_TOKEN - len("\u2026\u00bb".encode())
    cut = text.encode("utf-8", "replace")[: max(0, room)].decode("utf-8", "ignore") + "\u2026"
    closed = cut + "\u00bb" if cut.count("\u00ab") > cut.count("\u00bb") else cut
    return closed if tokens(closed) <= budget else ""


def fit_lines(lines: Sequence[str], budget: int, note: str) -> str:
    """As many whole lines from the top as the budget holds; `note` says how many are missing, as `{count}`."""
    if tokens("\n".join(lines)) <= budget:
        return "\n".join(lines)
    room = budget * BYTES_PER_TOKEN - len(note.format(count=len(lines)).encode())
    ends = accumulate(len(line.encode("utf-8", "replace")) + 1 for line in lines)
    kept = sum(1 for _ in takewhile(lambda end: end <= room, ends))
    return fit("\n".join((*lines[:kept], note.format(count=len(lines) - kept))), budget)


__all__ = [
    "BYTES_PER_TOKEN",
    "TEMPLATE_TOKENS",
    "clean",
    "fit",
    "fit_lines",
    "neutralise",
    "quote",
    "quoting",
    "tokens",
]
