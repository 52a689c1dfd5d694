"""Many requests for text through one compiled model, whose rows have positions of their own (continuous=True).

Each request has a row of the cache. Each round reads one piece of one prompt and then a token of every row that has one, so that requests
of different lengths run beside each other, and a free row takes the next request at once. What a free row has read stays, and a request that
begins with the same tokens begins behind them.

An answer does not depend on what else runs, in any bit: rows do not see each other, prompts are read in the same pieces whatever was read
before, and a model that computes one row alone to other bits than beside others is not asked for one row alone. With exact=False, the last
bits of logits may differ, and a request begins behind all tokens that are the same, answers included."""
from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from text import Text

MOST_LIKELY = 256  # so many tokens are looked at first for top_p


class Full(Exception):
    """There is no room in the queue."""


@dataclass
class Request:
    """ids: the prompt. give(text, reason): called by the engine's thread with text, and with the reason of the end: "stop", "length",
    "cancelled", "error". cancelled: set it to end the request."""
    ids: list[int]
    give: Callable[[str, str | None], None]
    most: int
    temperature: float = 0
    top_p: float = 1
    seed: int | None = None
    stop: tuple[str, ...] = ()
    endless: bool = False  # the token that ends texts does not end the answer
    cancelled: bool = False
    answered: int = 0  # tokens


@dataclass
class Row:
    number: int
    kept: list[int] = field(default_factory=list)  # the tokens whose keys and values it has
    exact: int = 0  # so many of them were read in whole pieces
    request: Request | None = None
    todo: list[int] = field(default_factory=list)  # tokens to read: of the prompt, or the last one of the answer
    text: Text | None = None
    random: torch.Generator | None = None
    used: float = 0  # when its last request began or ended

    @property
    def prompting(self) -> bool:
        return self.request is not None and len(self.kept) < len(self.request.ids)


class Engine:
    """queue: requests that may wait."""

    def __init__(self, lm: Any, tokenizer: Any, queue: int = 32, exact: bool = True):
        self.lm, self.tokenizer, self.queue, self.exact = lm, tokenizer, queue, exact
        ends = lm.generation_config.eos_token_id
        self.ends = set(ends if isinstance(ends, (list, tuple)) else [ends])
        self.waiting: collections.deque[Request] = collections.deque()
        self.rows = [Row(k) for k in range(lm.batch)]
        self.changed = threading.Condition()
        self.closed = False
        self.counts: collections.Counter[str] = collections.Counter()
        self.alone = lm.batch == 1 or not exact or self._same_alone()
        self.thread = threading.Thread(target=self._run, name="engine")
        self.thread.start()

    def submit(self, request: Request) -> None:
        """Puts a request into the queue. Raises Full."""
        with self.changed:
            self.waiting = collections.deque(r for r in self.waiting if not r.cancelled)
            free = sum(row.request is None for row in self.rows)
            if self.closed or len(self.waiting) >= self.queue + free:
                self.counts["refused"] += 1
                raise Full(f"{len(self.waiting)} requests wait already")
            self.waiting.append(request)
            self.changed.notify()

    def close(self) -> None:
        """Ends all requests as cancelled."""
        with self.changed:
            self.closed = True
            self.changed.notify()
        self.thread.join()

    @property
    def busy(self) -> int:
        return sum(row.request is not None for row in self.rows)

    # ---- on the engine's thread ----

    def _same_alone(self) -> bool:
        """Whether the model gives the bits of logits for one row alone that it gives beside others."""
        lm, random = self.lm, torch.Generator().manual_seed(0)
        ids = torch.randint(lm.config.get_text_config().vocab_size, (lm.batch, 8), generator=random)
        start = torch.tensor([2 + k % 5 for k in range(lm.batch)]).clamp(max=lm.max_length - 1)
        for row in range(lm.batch):
            lm.prefill(row, ids[row, :int(start[row])])
        beside = lm.decode(ids[:, -1], start)
        return all(torch.equal(lm.prefill(row, ids[row, -1:], int(start[row])), beside[row]) for row in range(lm.batch))

    def _run(self) -> None:
        while True:
            with self.changed:
                while not self.closed and not self.waiting and not self.busy:
                    self.changed.wait()
                if self.closed:
                    break
            try:
                self._admit()
                self._drop_cancelled()
                self._prompts()
                self._answers()
            except Exception as e:  # such as a check of the model that failed: nobody knows which row it was
                print(f"engine: {type(e).__name__}: {e}", flush=True)
                for row in self.rows:
                    row.kept, row.exact = [], 0
                    self._end(row, "error")
        for row in self.rows:
            self._end(row, "cancelled")
        for request in self.waiting:
            request.give("", "cancelled")

    def _admit(self) -> None:
        """Gives free rows to the requests that wait longest."""
        while any(row.request is None for row in self.rows):
            with self.changed:
                request = self.waiting.popleft() if self.waiting else None
            if request is None:
                return
            if request.cancelled:
                request.give("", "cancelled")
                continue
            try:
                row = self._row_for(request.ids)
            except Exception:
                request.give("", "error")
                raise
            row.request, row.todo, row.text = request, request.ids[len(row.kept):], Text(self.tokenizer, request.stop)
            row.random, row.used = torch.Generator(), time.monotonic()
            row.random.seed() if request.seed is None else row.random.manual_seed(request.seed)
            self.counts["requests"] += 1
            self.counts["prompt_tokens"] += len(request.ids)
            self.counts["reused_tokens"] += len(row.kept)

    def _row_for(self, ids: list[int]) -> Row:
        """A free row that has read the beginning of ids, as much of it as any row has."""
        free = [row for row in self.rows if row.request is None]
        best = max(self.rows, key=lambda row: (self._common(row, ids), row.request is None))
        count = self._common(best, ids)
        row = best if best in free and 2 * count >= len(best.kept) else min(free, key=lambda row: row.used)
        if row is not best and count:
            self.lm.copy(best.number, row.number, count)
        row.kept, row.exact = ids[:count], min(count, best.exact)
        return row

    def _common(self, row: Row, ids: list[int]) -> int:
        """How many tokens of a prompt need not be read again; the last one must."""
        most = min(len(row.kept), len(ids) - 1)
        if self.exact:
            most = min(most, row.exact) // self.lm.chunk * self.lm.chunk
        count = next((k for k in range(most) if row.kept[k] != ids[k]), most)
        return count // self.lm.chunk * self.lm.chunk if self.exact else count

    def _drop_cancelled(self) -> None:
        for row in self.rows:
            if row.request is not None and row.request.cancelled:
                self._end(row, "cancelled")

    def _prompts(self) -> None:
        """Reads a piece of the prompt that began to be read first."""
        row = next((row for row in sorted(self.rows, key=lambda row: row.used) if row.prompting), None)
        if row is None:
            return
        start, chunk = len(row.kept), self.lm.chunk
        part, row.todo = row.todo[:chunk], row.todo[chunk:]
        logits = self.lm.prefill(row.number, torch.tensor(part), start)
        row.kept += part
        if start == row.exact and len(part) == chunk:
            row.exact += chunk
        if not row.todo:
            self._choose(row, logits)

    def _answers(self) -> None:
        """Reads the last token of each answer."""
        rows = [row for row in self.rows if row.request is not None and not row.prompting]
        if not rows:
            return
        if len(rows) == 1 and self.alone:
            row = rows[0]
            logits = {row.number: self.lm.prefill(row.number, torch.tensor(row.todo), len(row.kept))}
        else:
            for row in self.rows:  # a row that reads none writes behind its tokens nevertheless
                row.kept = row.kept[:self.lm.max_length - 1]
                row.exact = min(row.exact, len(row.kept))
            ids = [row.todo[0] if row in rows else 0 for row in self.rows]
            logits = dict(enumerate(self.lm.decode(torch.tensor(ids), torch.tensor([len(row.kept) for row in self.rows]))))
        for row in rows:
            row.kept += row.todo
            self._choose(row, logits[row.number])

    def _choose(self, row: Row, logits: torch.Tensor) -> None:
        """Gives out the next token of an answer, or ends it."""
        request, text = row.request, row.text
        assert request is not None and text is not None
        token = chosen(logits, request.temperature, request.top_p, row.random)
        request.answered += 1
        self.counts["answer_tokens"] += 1
        if token in self.ends and not request.endless:
            self._end(row, "stop")
            return
        more = text.add(token)
        if more:
            request.give(more, None)
        if text.stopped:
            self._end(row, "stop")
        elif request.answered >= request.most or len(row.kept) >= self.lm.max_length:
            self._end(row, "length")
        else:
            row.todo = [token]

    def _end(self, row: Row, reason: str) -> None:
        request = row.request
        if request is None:
            return
        row.request, row.todo, row.used = None, [], time.monotonic()
        rest = row.text.end() if row.text is not None and reason in ("stop", "length") else ""
        if rest and row.text is not None and row.text.stopped:
            reason = "stop"
        self.counts[reason] += 1
        request.give(rest, reason)


def chosen(logits: torch.Tensor, temperature: float, top_p: float, random: torch.Generator | None) -> int:
    """The number of a token: of the greatest logit, or drawn."""
    if temperature == 0:
        return int(logits.argmax())
    p = (logits / temperature).softmax(-1)
    order = None
    if top_p < 1:
        p, order = p.topk(min(MOST_LIKELY, len(p))) if len(p) > MOST_LIKELY else p.sort(descending=True)
        if float(p.sum()) < top_p:  # the rest counts, too
            p, order = (logits / temperature).softmax(-1).sort(descending=True)
    total = p.double().cumsum(-1)
    if order is not None:
        total = total[:int(torch.searchsorted(total, min(top_p, float(total[-1])))) + 1]
    at = torch.rand((), generator=random, dtype=torch.float64) * total[-1]
    k = min(int(torch.searchsorted(total, at, right=True)), len(total) - 1)
    return k if order is None else int(order[k])
