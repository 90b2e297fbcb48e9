"""What people said, made unreadable so that the charts still decide the same.

The charts look at a text in four ways only: whether it is empty, how many words it has, which of them are backchannels,
and whether it equals another text. A redacted text keeps exactly that:

    "no, wait"  ->  "⢃⠷⡜⣠ x x"        "mhm"  ->  "⣛⢄⠿⡇ b"

The mark in front is a digest under a key that is never written, in characters that belong to no word; `x` is a word,
`b` a backchannel. The words themselves, their lengths and their letters are gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b

from ..context import Turn, join_texts
from ..policies import InterruptionPolicy, JudgesInterruptions, Policies, words_of

WORD = "x"
BACKCHANNEL = "b"
MIN_KEY_BYTES = 16
_MARK_BYTES = 4
_BRAILLE = 0x2800
"""One character a byte; `words_of` finds no word in them, and they are no white space."""
MARK = re.compile(rf"[\u2800-\u28ff]{{{_MARK_BYTES}}} ?")
"""What `redact` puts in front."""


@dataclass(frozen=True, slots=True)
class Redactor:
    """Redacts under one key: the same text gives the same mark. Raises `ValueError` for a short key."""

    key: bytes
    backchannels: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if len(self.key) < MIN_KEY_BYTES:
            raise ValueError(f"a redaction key has at least {MIN_KEY_BYTES} bytes, not {len(self.key)}")

    @classmethod
    def for_policies(cls, key: bytes, policies: Policies) -> Redactor:
        """A redactor that keeps what these policies look at."""
        policy = policies.interruption
        return cls(key, policy.backchannels if isinstance(policy, InterruptionPolicy) else frozenset())

    def redact(self, text: str) -> str:
        """The redacted text; a blank one stays as it is."""
        if not text.strip():
            return text
        digest = blake2b(text.encode("utf-8", "surrogatepass"), key=self.key, digest_size=_MARK_BYTES).digest()
        mark = "".join(chr(_BRAILLE + byte) for byte in digest)
        return " ".join((mark, *(BACKCHANNEL if word in self.backchannels else WORD for word in words_of(text))))

    def of_step(self, fact_text: str | None, turns: tuple[Turn, ...]) -> Callable[[str], str]:
        """A filter for the actions of one macrostep.

        The text of a turn is joined from its segments, so it is redacted piece by piece: a replay, which has only the
        redacted pieces, joins the same.
        """
        joined: dict[str, str] = {}
        for turn in turns:
            pieces = [segment.text for segment in turn.segments if segment.is_final]
            joined[join_texts(pieces)] = join_texts(self.redact(piece) for piece in pieces)
        if fact_text is not None:
            joined[fact_text.strip()] = joined[fact_text] = self.redact(fact_text)
        return lambda text: joined[text] if text in joined else self.redact(text)


def for_redacted(policy: JudgesInterruptions) -> JudgesInterruptions:
    """The policy that judges redacted texts as `policy` judges the texts themselves."""
    if not isinstance(policy, InterruptionPolicy):
        return policy
    return replace(policy, backchannels=frozenset({BACKCHANNEL}) if policy.backchannels else frozenset())
