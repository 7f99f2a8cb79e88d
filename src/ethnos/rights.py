"""Who may do what at a run's service: tokens for rights, derived from the run's own secret.

The secret never travels. Each right has a token of its own, an HMAC of the secret and the right's name, so a token
for looking cannot be made into one for more, and none of them means anything to another run.
"""

import hmac
from hashlib import sha256
from typing import Literal, get_args

Right = Literal["act", "look", "control", "administer"]
"""act: host agents. look: watch and inspect. control: pause, step, stop as well. administer: change the world, too."""

_NEEDED: dict[str, Right] = {
    "/ethnos.wire.v1.World/Live": "act",
    "/ethnos.wire.v1.Control/Watch": "look",
    "/ethnos.wire.v1.Control/Inspect": "look",
    "/ethnos.wire.v1.Control/Pause": "control",
    "/ethnos.wire.v1.Control/Resume": "control",
    "/ethnos.wire.v1.Control/Step": "control",
    "/ethnos.wire.v1.Control/Stop": "control",
    "/ethnos.wire.v1.Control/Intervene": "administer",
}
_INCLUDES: dict[Right, tuple[Right, ...]] = {
    "act": ("act",),
    "look": ("look",),
    "control": ("look", "control"),
    "administer": ("look", "control", "administer"),
}


def token_for(secret: str, right: Right) -> str:
    """The token that gives a right. What is a token already stays what it is."""
    if secret.partition(".")[0] in get_args(Right):
        return secret
    return f"{right}.{hmac.new(secret.encode(), f'ethnos {right}'.encode(), sha256).hexdigest()}"


def right_of(secret: str, token: str) -> Right | None:
    """The right that a token gives, in time that tells nothing; None if it gives none."""
    found: Right | None = None
    for right in get_args(Right):
        if hmac.compare_digest(token.encode("utf-8", "replace"), token_for(secret, right).encode()):
            found = right
    return found


def may(right: Right | None, method: str) -> bool:
    """Whether a right is enough for a method; what is not listed is nobody's."""
    return right is not None and _NEEDED.get(method) in _INCLUDES[right]


def metadata(token: str) -> tuple[tuple[str, str], ...]:
    """What a call carries."""
    return (("authorization", f"Bearer {token}"),)


__all__ = ["Right", "may", "metadata", "right_of", "token_for"]
