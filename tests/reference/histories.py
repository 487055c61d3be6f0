"""Random histories: scenarios in the format of DESIGN.md §13, as plain dicts, for the differential tests.

`history(seed)` writes one, `histories()` is the same as a hypothesis strategy, `expected(scenario)` adds what
the reference says of each step. A history is a run of gestures (a refreshed premise, a correction of the
past, a departure and a return, an act with one thing wrong in it …), each with its choices from a
`random.Random`. The writer plays along, so that it can aim: at a ticket still open, at the moment a
view expires.

It stays where the page has one meaning. It never writes two faults into one act whose order §5 doesn't give,
names no erased item in a later write, and asks no full-text query.

    python -m tests.reference.histories FOLDER SEED...
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import IO, Any

from .gestures import gesture
from .play import Outcome, play
from .writer import Step, Writer


def history(seed: int | Random, gestures: int = 40) -> dict[str, Any]:
    """A scenario without expectations; the same seed gives the same scenario."""
    rng = seed if isinstance(seed, Random) else Random(seed)  # noqa: S311
    writer = Writer(rng)
    for _ in range(gestures):
        gesture(writer, rng)
    return writer.scenario


def histories(max_gestures: int = 30) -> Any:
    """The hypothesis strategy of scenarios. Each gesture has its own choices, so failures shrink well."""
    from hypothesis import strategies as st

    choices = st.randoms(use_true_random=False)

    def build(header: Random, gestures: Sequence[Random]) -> dict[str, Any]:
        writer = Writer(header)
        for rng in gestures:
            gesture(writer, rng)
        return writer.scenario

    return st.builds(build, choices, st.lists(choices, min_size=1, max_size=max_gestures))


# ---------------------------------------------------------------- what the reference says of it


def expected(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """The scenario with an `expect` on every step that gives an answer or is refused."""
    steps = []
    for step, outcome in zip(scenario["steps"], play(scenario), strict=True):
        bare = {field: value for field, value in step.items() if field != "expect"}
        expect = expectation(outcome)
        steps.append(bare | {"expect": expect} if expect else bare)
    return {**scenario, "steps": steps}


def expectation(outcome: Outcome) -> Step:
    if outcome.error is not None:
        return {"error": outcome.error}
    found: Step = {}
    for field, value in vars(outcome).items():
        if field in ("step", "act") or value is None:
            continue
        if isinstance(value, Mapping):
            found[field] = {name: sorted(reasons) for name, reasons in value.items()}
        elif isinstance(value, frozenset):
            found[field] = sorted(value)
        else:
            found[field] = value if isinstance(value, str) else float(value)
    if outcome.decision == "refused":  # nothing is listed
        return {"decision": "refused"}
    return found


def dump(scenario: Mapping[str, Any], stream: IO[str]) -> None:
    """As a scenario file."""
    from ruamel.yaml import YAML

    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    yaml.allow_unicode = True
    yaml.dump(dict(scenario), stream)


def main(folder: str, seeds: Sequence[str]) -> None:
    for seed in seeds:
        with (Path(folder) / f"history-{seed}.trace.yaml").open("w", encoding="utf-8") as stream:
            dump(expected(history(int(seed))), stream)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
