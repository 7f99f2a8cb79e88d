"""Answers already given, so that a model is never paid twice for one question."""

from collections import OrderedDict
from collections.abc import Hashable

from ethnos.actors.inference.request import Reply

_OVERHEAD = 500


class Memo:
    """The latest answers, in bounded memory."""

    def __init__(self, most_replies: int, most_bytes: int) -> None:
        self._replies: OrderedDict[Hashable, Reply] = OrderedDict()
        self._most_replies = most_replies
        self._most_bytes = most_bytes
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._replies)

    def get(self, key: Hashable) -> Reply | None:
        return self._replies.get(key)

    def put(self, key: Hashable, reply: Reply) -> None:
        """Keep an answer, and drop the oldest ones for it."""
        if key in self._replies:
            return
        self._replies[key] = reply
        self._bytes += _size(reply)
        while len(self._replies) > self._most_replies or self._bytes > self._most_bytes:
            _, dropped = self._replies.popitem(last=False)
            self._bytes -= _size(dropped)


def _size(reply: Reply) -> int:
    return _OVERHEAD + 2 * len(reply.text)
