"""Bounds on what one agent may send in one turn; larger things are refused, never truncated into effect."""

MAX_ACTION_BYTES = 64 * 1024
MAX_MESSAGE_CHARS = 4_000
MAX_MEMORY_BYTES = 256 * 1024
MAX_HOW_BYTES = 1024 * 1024
MAX_KIND_CHARS = 64
MAX_NAME_CHARS = 40
MAX_REASON_CHARS = 400
MAX_LAYERS = 64
"""Pieces of prompts that one decision may bring along."""
MAX_LAYER_BYTES = 1024 * 1024
MAX_CHANGE_BYTES = 256 * 1024
"""An intervention."""
MAX_WATCHERS = 64
CALLS_PER_S = 50
"""Calls of people and tools, per right; four times as many may come at once."""
HELLO_S = 10.0
"""A stream that has not said who it is by then is ended."""
