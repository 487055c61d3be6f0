"""tracegraph decides what a returning agent may still act on.

The team's work state lives in Neo4j, bitemporal; each return passes four gates in Cypher and a cover of the open
obligations, and ends in a signed, expiring Return View, or in nothing. Start with `connect`; `tracegraph.sync` has the
same names without `await`. Source: arXiv 2609.33517 (TRACE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracegraph.errors import TracegraphError
    from tracegraph.graph import Graph, connect
    from tracegraph.model import (
        Frontier,
        Item,
        Obligation,
        Policy,
        Receipt,
        ReceiptRef,
        Result,
        Support,
    )
    from tracegraph.workspace import Workspace

__version__ = "0.1.0"
__all__ = [
    "Frontier",
    "Graph",
    "Item",
    "Obligation",
    "Policy",
    "Receipt",
    "ReceiptRef",
    "Result",
    "Support",
    "TracegraphError",
    "Workspace",
    "connect",
]

_HOME = {
    "TracegraphError": "errors",
    "Graph": "graph",
    "connect": "graph",
    "Workspace": "workspace",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that importing the package loads neither driver nor models."""
    if name not in __all__:
        raise AttributeError(f"module 'tracegraph' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"tracegraph.{_HOME.get(name, 'model')}"), name)
