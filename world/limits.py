"""Bounds on what one agent may send in one turn; larger things are refused, never truncated into effect."""

MAX_ACTION_BYTES = 64 * 1024
MAX_MESSAGE_CHARS = 4_000
MAX_MEMORY_BYTES = 256 * 1024
MAX_NAME_CHARS = 40
MAX_REASON_CHARS = 400
