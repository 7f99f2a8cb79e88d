"""Bounds on what one agent may send in one turn; larger things are refused, never truncated into effect."""

MAX_ACTION_BYTES = 64 * 1024
MAX_MESSAGE_CHARS = 4_000
MAX_MEMORY_BYTES = 256 * 1024
MAX_HOW_BYTES = 1024 * 1024
MAX_KIND_CHARS = 64
MAX_NAME_CHARS = 40
MAX_REASON_CHARS = 400
MAX_STREAM_BYTES = 64 * 1024 * 1024
"""One gRPC message, a batch of observations or decisions."""
