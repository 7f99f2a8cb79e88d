"""What a GGUF file says about its model: only its header is read."""

import struct
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from ethnos.errors import EthnosError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_CONTROL, _USER_DEFINED = 3, 4
MAX_ITEMS = 10_000_000
MAX_STRING = 64 << 20


def read_header(path: Path) -> dict[str, Any]:
    """The key-value pairs of the header. Raises EthnosError if the file is none, or damaged."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF" or _scalar(file, "I") < 2:
                raise EthnosError(f"{path} is no GGUF file of a version we know")
            _scalar(file, "Q")
            return {_string(file): _value(file, _scalar(file, "I")) for _ in range(_size(file))}
    except (OSError, struct.error, UnicodeDecodeError, KeyError, OverflowError) as error:
        raise EthnosError(f"cannot read {path}: {type(error).__name__}") from None


@lru_cache(maxsize=8)
def special_tokens(path: Path) -> frozenset[str]:
    """Tokens that are the model's own and no text."""
    header = read_header(path)
    tokens, kinds = header.get("tokenizer.ggml.tokens", []), header.get("tokenizer.ggml.token_type", [])
    own = (_CONTROL, _USER_DEFINED)
    return frozenset(t for t, kind in zip(tokens, kinds, strict=False) if kind in own and t.strip())


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _scalar(file, _SCALARS[kind])
    inner, size = _scalar(file, "I"), _size(file)
    if inner in (_STRING, _ARRAY):
        return [_value(file, inner) for _ in range(size)]
    form = f"<{size}{_SCALARS[inner]}"
    return list(struct.unpack(form, file.read(struct.calcsize(form))))


def _scalar(file: BinaryIO, form: str) -> Any:
    form = "<" + form
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _size(file: BinaryIO) -> int:
    size: int = _scalar(file, "Q")
    if size > MAX_ITEMS:
        raise OverflowError(size)
    return size


def _string(file: BinaryIO) -> str:
    length: int = _scalar(file, "Q")
    if length > MAX_STRING:
        raise OverflowError(length)
    return file.read(length).decode("utf-8", "replace")
