"""Text of tokens that come one at a time, up to a stop string."""
from __future__ import annotations

from typing import Any

REPLACEMENT = "\ufffd"  # what stands for bytes that are no character yet


class Text:
    """The text of an answer.

    A token may be a part of a character, and what it looks like may depend on the tokens in front of it. So each step decodes the last
    tokens that were given out and the new ones together, and gives out by what the text has become longer. Text that may be the beginning of
    a stop string is held back."""

    def __init__(self, tokenizer: Any, stop: tuple[str, ...] = ()):
        self.tokenizer, self.stop = tokenizer, stop
        self.ids: list[int] = []
        self.first = self.read = 0  # ids[first:read] were given out, and decode what follows as they did before
        self.held = ""              # text that is decoded, and not given out
        self.stopped = False

    def add(self, token: int) -> str:
        """The text that is known to belong to the answer since the last call."""
        self.ids.append(token)
        whole = self._decode(self.ids[self.first:])
        if whole.endswith(REPLACEMENT):
            return ""
        return self._more(whole, len(self.ids))

    def end(self) -> str:
        """What is left once no token follows: what was held back, and characters that are not whole."""
        if self.stopped:
            return ""
        text = self._more(self._decode(self.ids[self.first:]), len(self.ids))
        text, self.held = text + self.held, ""
        return text

    def _decode(self, ids: list[int]) -> str:
        return self.tokenizer.decode(ids, skip_special_tokens=True)

    def _more(self, whole: str, read: int) -> str:
        before = self._decode(self.ids[self.first:self.read])
        self.held += whole[len(before):]
        self.first, self.read = self.read, read
        at = min((k for k in (self.held.find(s) for s in self.stop) if k >= 0), default=-1)
        if at >= 0:
            self.stopped, text, self.held = True, self.held[:at], ""
            return text
        count = max((n for s in self.stop for n in range(1, len(s)) if self.held.endswith(s[:n])), default=0)
        text, self.held = self.held[:len(self.held) - count], self.held[len(self.held) - count:]
        return text
