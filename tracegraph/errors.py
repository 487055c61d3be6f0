"""Every refusal: a stable code, what was wrong with which value, and what to do.

Item content never enters a message; ids, keys, scopes and limits do.
"""

from __future__ import annotations

from typing import Literal

Code = Literal[
    "invalid_record",
    "naive_datetime",
    "empty_interval",
    "unknown_item",
    "unknown_principal",
    "role_not_held",
    "write_not_granted",
    "not_owner",
    "conflict",
    "limit_exceeded",
    "policy_loosened",
    "not_absent",
    "invalid_ticket",
    "ticket_consumed",
    "ticket_expired",
    "view_invalid",
    "view_expired",
    "view_stale",
    "erased",
    "unavailable",
]

HINTS: dict[str, str] = {
    "invalid_record": "Correct the named field and send the batch again; nothing was written.",
    "naive_datetime": "Give the instant with its offset, for example 2026-05-01T09:00:00Z.",
    "empty_interval": "valid_to must be later than valid_from; leave valid_to out for an open end.",
    "unknown_item": "Check the id; within a batch, records may name each other in any order.",
    "unknown_principal": "The owner makes a principal known by granting it a role.",
    "role_not_held": "The owner grants a role with grant(principal=..., role=...).",
    "write_not_granted": "The owner grants a role write access with grant(role=..., write=[scope]).",
    "not_owner": "Only the workspace's owner may do this.",
    "conflict": "Read the current state and decide anew, with an id of its own for each record; nothing was written.",
    "limit_exceeded": "Make it smaller or split it; the limits are in tracegraph.model.Limits.",
    "policy_loosened": "A call may tighten the workspace's policy, never loosen it; the owner sets a new revision.",
    "not_absent": "Call depart first, or join to enter without a ticket.",
    "invalid_ticket": "Use the ticket as depart returned it, its principal and its keys (TRACEGRAPH_KEYS); or join.",
    "ticket_consumed": "The ticket was used or replaced; call depart for a new one, or join without one.",
    "ticket_expired": "Call join to enter without a ticket.",
    "view_invalid": "Use the view exactly as it was issued, for the same principal, role and task.",
    "view_expired": "Return again to get a fresh view.",
    "view_stale": "The state changed after the view was signed; return again.",
    "erased": "The item was erased for good.",
    "unavailable": "See what is wrong: tracegraph doctor.",
}


class TracegraphError(Exception):
    """The one exception base. `code` is stable, `hint` says what to do, `reasons` holds a stale view's."""

    def __init__(
        self,
        message: str,
        *,
        code: Code,
        hint: str | None = None,
        reasons: dict[str, list[str]] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code: Code = code
        self.hint = HINTS[code] if hint is None else hint
        self.reasons = reasons or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.message} {self.hint}".rstrip()


class Unavailable(TracegraphError):
    """The database, or what it needs to start, cannot be used now."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, code="unavailable", hint=hint)
