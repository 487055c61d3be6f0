"""The verifier: one pair, one question, one strict answer (paper §3.2; DESIGN §8).

Whatever is not a clean answer about the pair that was asked is `uncertain`, with its cause. Whether the quote stands in
the later item and the confidence suffices is decided where verdicts are written.
"""

from __future__ import annotations

import unicodedata

from tracegraph.invalidation.endpoint import Endpoint, Reply
from tracegraph.invalidation.evidence import Answer, Ask, Pair
from tracegraph.invalidation.prompts import Judgment, MalformedError, Recovery, judging, pair_data, parse
from tracegraph.model import folded

NAME = 16
"""How much of a pair's key an answer must repeat."""


class ModelVerifier:
    """Judges pairs with a chat model."""

    def __init__(self, endpoint: Endpoint, model: str) -> None:
        self.endpoint = endpoint
        self.model = model

    def prompt(self, ask: Ask) -> str:
        return judging(ask).digest

    def name(self, pair: Pair) -> str:
        return pair.key(self.prompt(pair.ask), self.model)[:NAME]

    async def verify(self, pair: Pair) -> Answer:
        data = pair_data(pair, self.name(pair))
        if data is None:
            return Answer("uncertain", cause="too_long")
        return self.answer(pair, await self.endpoint.ask(self.model, judging(pair.ask), data))

    def answer(self, pair: Pair, reply: Reply) -> Answer:
        """What a reply says about this pair."""
        if reply.text is None:
            return Answer("uncertain", cause=reply.cause, usage=reply.usage)
        try:
            found = parse(Recovery if pair.ask == "restore" else Judgment, reply.text)
        except MalformedError as fault:
            return Answer("uncertain", cause=fault.cause, usage=reply.usage)
        if found.pair != self.name(pair):
            return Answer("uncertain", cause="wrong_pair", usage=reply.usage)
        undecided = found.verdict == "uncertain"
        return Answer(
            says=found.verdict,
            confidence=found.confidence,
            quote=found.quote,
            rationale=_line(found.rationale) or None,
            cause="undecided" if undecided else None,
            usage=reply.usage,
        )


def _line(text: str) -> str:
    """One line without control characters."""
    kept = "".join(" " if unicodedata.category(one) in ("Cc", "Zl", "Zp") else one for one in text)
    return folded(kept)


def estimate(pair: Pair) -> int:
    """Tokens to reserve for judging a pair: its prompt, and a short answer."""
    sides = (pair.later, pair.earlier, *pair.behind)
    shown = sum(len(side.content) + min(6_000, sum(len(text) for text in side.receipts)) for side in sides)
    return len(judging(pair.ask).system) // 4 + shown // 3 + 100 * len(sides) + 150
