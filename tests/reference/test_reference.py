"""The reference agrees with the shared scenarios, and with cases worked out by hand from DESIGN.md.

The shared scenarios are looked for in `shared/scenarios` beside the repository, else in
`$TRACEGRAPH_SHARED/scenarios`.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from .histories import dump, expected, histories, history
from .play import disagreements, load, play

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("TRACEGRAPH_SHARED", REPOSITORY.parent / "shared")) / "scenarios"
FILES = sorted(SHARED.rglob("*.trace.yaml"))

DAY = [f"2026-03-{day:02}T08:00:00Z" for day in range(32)]  # DAY[1] is the first step's


# ---------------------------------------------------------------- shared scenarios and histories


@pytest.mark.skipif(not FILES, reason="no shared scenarios: set TRACEGRAPH_SHARED to the folder that holds them")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".trace.yaml"))
def test_agrees_with_a_shared_scenario(path: Path) -> None:
    assert disagreements(load(path)) == []


GATE_REASONS = {
    *("scope_not_granted", "denied", "source_not_readable"),
    *("not_yet_valid", "expired", "superseded", "revoked", "resolved", "retracted"),
    *("invalidated", "premise_invalid", "erased", "unverified"),
    *("wrong_purpose", "kind_not_allowed", "wrong_role"),  # wrong_task: such items are outside the pool
    *("missing_receipt", "receipt_mismatch", "receipt_revoked", "unbound_support"),
    "over_item_budget",
}
SELECTION_REASONS = {"not_selected", "mandatory_over_budget", "missing_frontier", "obligation_not_admissible"}
DECISIONS = {"admitted", "blocked", "reset", "refused"}
CODES = {
    *("invalid_record", "naive_datetime", "empty_interval", "limit_exceeded", "conflict"),
    *("unknown_item", "unknown_principal", "role_not_held", "write_not_granted"),
    *("policy_loosened", "not_absent", "ticket_consumed", "ticket_expired", "view_expired", "view_stale"),
}


def test_histories_reach_every_reason_decision_and_code_a_scenario_can() -> None:
    seen: Counter[str] = Counter()
    for seed in range(150):
        for outcome in play(history(seed)):
            seen[outcome.error or outcome.decision or "done"] += 1
            seen["recalled"] += bool(outcome.recalled)
            for reasons in (*(outcome.rejected or {}).values(), *(outcome.selection or {}).values()):
                seen.update(reasons)
    assert GATE_REASONS | SELECTION_REASONS | DECISIONS | CODES | {"recalled"} <= {name for name in seen if seen[name]}


def test_a_history_survives_its_file(tmp_path: Path) -> None:
    for seed in range(4):
        assert history(seed) == history(seed)
        scenario = expected(history(seed))
        text = io.StringIO()
        dump(scenario, text)
        path = tmp_path / f"{seed}.trace.yaml"
        path.write_text(text.getvalue(), encoding="utf-8")
        assert disagreements(load(path)) == []


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_a_decision_accounts_for_what_it_lists(scenario: dict[str, Any]) -> None:
    outcome: Any
    for outcome in play(scenario):
        if outcome.decision is None or outcome.decision == "refused":
            continue
        assert outcome.pool == set(outcome.rejected or {})
        eligible = {item for item, reasons in (outcome.rejected or {}).items() if not reasons}
        left_out = {item for item, why in (outcome.selection or {}).items() if why == {"not_selected"}}
        if outcome.decision == "admitted":
            assert outcome.admitted == eligible - left_out
            assert set(outcome.selection or {}) == left_out
        else:
            assert outcome.admitted == frozenset()


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories())
def test_the_past_answers_as_it_did_save_for_permission_and_erasure(scenario: dict[str, Any]) -> None:
    """The same two clocks, asked again at the end of the history."""
    unchanging = [step for step in scenario["steps"] if not {"grant", "deny", "withdraw", "erase"} & step.keys()]
    forever = {role: {"read": ["open", "team", "vault"]} for role in ("asking",)}
    reader = {"principal": "Reader", "role": "asking", "task": "build", "valid_at": DAY[3]}
    asking = {"read": reader, "name": "asked"}
    header = {**scenario, "roles": {**scenario["roles"], **forever}}
    header["principals"] = {**scenario["principals"], "Reader": ["asking"]}
    middle = len(unchanging) // 2
    header["steps"] = [
        *unchanging[:middle],
        asking,
        *unchanging[middle:],
        {"read": {**reader, "known_at": "asked"}},
    ]
    outcomes = play(header)
    assert outcomes[middle].items == outcomes[-1].items


# ---------------------------------------------------------------- small scenarios, by hand


def run(*steps: dict[str, Any], **header: Any) -> list[Any]:
    """Plays steps in a workspace where P is a dev, who may read and write `open`."""
    scenario = {
        "scenario": "by hand",
        "clock": DAY[1],
        "roles": {"dev": {"read": ["open"], "write": ["open"]}},
        "principals": {"P": ["dev"]},
        "policy": {"fill": "none"},
        "steps": list(steps),
    }
    return play(scenario | header)


def last(*steps: dict[str, Any], **header: Any) -> Any:
    """The outcome of the last step; those before it must be carried out."""
    *before, answer = run(*steps, **header)
    assert [outcome.error for outcome in before] == [None] * len(before)
    return answer


def record(name: str, at: str | None = None, **fields: Any) -> dict[str, Any]:
    fields.setdefault("receipts", [{"id": f"r_{name}", "uri": "log:1", "text": f"receipt of {name}"}])
    return ({"at": at} if at else {}) | {"record": {"id": name, "scope": "open", "content": name} | fields}


def owes(name: str, *requires: str, frontier: str = "f", **fields: Any) -> dict[str, Any]:
    fields = {"id": name, "scope": "open", "content": name, "requires": list(requires)} | fields
    return {"open_obligation": fields | {"frontier": {"id": f"{frontier}_{name}", "content": "f"}}}


JOIN = {"join": {"principal": "P", "role": "dev", "task": "t"}}
DEPART = {"depart": {"principal": "P", "role": "dev", "task": "t"}}
ADMIT = {"admit": {"principal": "P"}}
RECALL = {"recall": {"principal": "P"}}
READ = {"read": {"principal": "P", "role": "dev", "task": "t"}}


def asking(step: dict[str, Any], at: str | None = None, **more: Any) -> dict[str, Any]:
    [(act, fields)] = step.items()
    return ({"at": at} if at else {}) | {act: fields | more}


# §3.1


def test_of_two_versions_with_one_valid_from_the_later_recorded_is_current() -> None:
    tie = [record("a", key="k"), record("b", key="k")]
    assert last(*tie, READ).items == {"b"}
    batch = {"record": [tie[1]["record"], tie[0]["record"]]}
    assert last(batch, READ).items == {"a"}  # by place in the batch


def test_a_version_with_an_end_ends_its_predecessor_for_good() -> None:
    quote = [record("old", key="k"), record("q", DAY[2], key="k", valid_to=DAY[4])]
    assert last(*quote, READ).items == {"q"}
    assert last(*quote, asking(READ, DAY[4])).items == set()


def test_a_correction_of_the_past_without_a_regular_version_is_current_only_there() -> None:
    past = record("c", DAY[9], key="k", valid_from=DAY[2], valid_to=DAY[4])
    assert last(past, asking(READ, valid_at=DAY[3])).items == {"c"}
    gone = last(past, DEPART, asking(ADMIT, DAY[10]))
    assert gone.pool == set()
    shown = last(record("x"), DEPART, past, ADMIT)
    assert shown.rejected is not None
    assert shown.rejected["c"] == {"expired"}  # with no current version there is nothing to supersede it


def test_a_supersession_across_keys_counts_from_the_newer_ones_begin_and_falls_with_it() -> None:
    steps = [record("a"), record("b", supersedes=["a"], valid_from=DAY[3])]
    assert last(*steps, READ).items == {"a"}
    assert last(*steps, asking(READ, DAY[3])).items == {"b"}
    assert last(*steps, {"at": DAY[3], "retract": {"target": "b"}}, READ).items == {"a"}
    assert last(*steps, {"at": DAY[3], "revoke": {"target": "b"}}, READ).items == set()


def tower(floors: int) -> dict[str, Any]:
    above = [record(f"i{n}", depends_on=[f"i{n - 1}"])["record"] for n in range(1, floors)]
    return {"record": [record("i0")["record"], *above]}


def test_a_chain_of_32_premises_stands_and_one_of_33_fails_closed() -> None:
    stand = last(tower(34), READ).items
    assert stand == {f"i{n}" for n in range(33)}


def test_a_circle_of_premises_fails_closed_and_what_rests_on_it_too() -> None:
    circle = {
        "record": [
            record("a", depends_on=["b"])["record"],
            record("b", depends_on=["a"])["record"],
            record("c", depends_on=["a"])["record"],
        ]
    }
    assert last(circle, JOIN).rejected == {name: {"premise_invalid"} for name in "abc"}


def test_a_premise_survives_a_refresh_in_the_same_words_but_not_its_revocation() -> None:
    steps = [
        record("a", key="k", content="same"),
        record("m", depends_on=["a"]),
        record("b", key="k", content="same"),
    ]
    assert last(*steps, READ).items == {"b", "m"}
    assert last(*steps, {"revoke": {"target": "b"}}, READ).items == set()


def test_only_a_later_restoring_verdict_answers_an_invalidating_one() -> None:
    steps = [record("old"), record("new")]
    no = {"verdict": {"later": "new", "earlier": "old", "says": "invalidates", "task": "t"}}
    yes = {"verdict": {"later": "new", "earlier": "old", "says": "restores"}}
    assert last(*steps, yes, no, READ).items == {"new"}
    assert last(*steps, no, yes, READ).items == {"old", "new"}
    assert last(*steps, no, asking(READ, task="other")).items == {"old", "new"}


# §5


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (record("a", by="Nobody", content="other"), "conflict"),  # repeated ids before permission
        (record("b", depends_on=["b", "gone"]), "unknown_item"),  # unknown ids before the own identity
        (record("b", key="a", depends_on=["a"], by="Q"), "invalid_record"),  # own identity before permission
        (record("b", by="Q", scope="shut"), "write_not_granted"),
        (record("b", by="Nobody"), "unknown_principal"),
        (record("b", supersedes=["b"]), "invalid_record"),
        (record("b", valid_to=DAY[1]), "empty_interval"),  # valid_from defaults to the moment of recording
        (record("b", valid_from="2026-03-01T08:00:00"), "naive_datetime"),
        (record("b", key="k" * 257), "limit_exceeded"),
        (record("b", content="c" * 65_537), "limit_exceeded"),
        (record("b", supports=[{"dependency": "d", "receipt": "gone"}]), "unknown_item"),
        (record("b", receipts=[{"id": "gone", "sha256": "0" * 64}]), "unknown_item"),
        (record("b", receipts=[{"id": "r_a", "uri": "log:2", "text": "again"}]), "conflict"),
        (record("r_a"), "conflict"),  # items and receipts are named by their ids alone
        (record("b", receipts=[{"id": "a", "uri": "log:2", "text": "other"}]), "conflict"),
        ({"resolve": {"target": "a", "by": "Q"}}, "invalid_record"),  # another kind before permission
        ({"advance": {"id": "f", "obligation": "a", "content": "f"}}, "invalid_record"),
        ({"verdict": {"later": "a", "earlier": "a", "says": "compatible"}}, "invalid_record"),
        ({"remember": {"id": "m", "principal": "P", "content": "m", "grounded_in": []}}, "invalid_record"),
        ({"retract": {"target": "a", "by": "Q"}}, "write_not_granted"),
        ({"withdraw": {"target": "a"}}, "unknown_item"),
    ],
)
def test_the_first_fault_is_the_one_reported(step: dict[str, Any], code: str) -> None:
    assert last(record("a"), step, principals={"P": ["dev"], "Q": []}).error == code


def test_a_batch_may_refer_forward_and_is_all_or_nothing() -> None:
    forward = {"record": [record("a", depends_on=["b"])["record"], record("b")["record"]]}
    assert last(forward, READ).items == {"a", "b"}
    forward["record"].append(record("c", depends_on=["gone"])["record"])
    refused, read = run(forward, READ)
    assert (refused.error, read.items) == ("unknown_item", set())


def test_each_scope_may_be_written_through_another_role_and_a_denial_concerns_its_own() -> None:
    roles = {name: {"read": ["open"], "write": [scope]} for name, scope in (("one", "open"), ("two", "shut"))}
    header = {
        "roles": roles | {"dev": {"read": ["open"], "write": ["open"]}},
        "principals": {"P": ["one", "two", "dev"]},
    }
    steps = [record("a", scope="shut"), record("b", by="P", supersedes=["a"])]
    assert last(*steps, **header).error is None
    assert last(steps[0], {"deny": {"role": "one", "write": ["open"]}}, steps[1], **header).error is None
    assert last(steps[0], {"deny": {"role": "two", "write": ["shut"]}}, steps[1], **header).error == "write_not_granted"


def test_a_receipt_is_revoked_with_the_permission_of_every_item_bound_to_it() -> None:
    shared = [{"id": "r_a", "sha256": "0" * 64}]
    revoke = {"revoke": {"target": "r_a", "by": "P"}}
    assert last(record("a"), revoke).error is None
    assert last(record("a"), record("b", scope="shut", receipts=shared), revoke).error == "write_not_granted"


def test_a_frontier_advances_only_an_obligation_that_stands_for_its_own_task() -> None:
    advance = {"advance": {"id": "f2", "obligation": "o", "content": "f"}}
    opened = [record("x"), owes("o", task="t")]
    elsewhere = {"verdict": {"later": "x", "earlier": "o", "says": "invalidates", "task": "other"}}
    here = {"verdict": {"later": "x", "earlier": "o", "says": "invalidates", "task": "t"}}
    assert last(*opened, elsewhere, advance, READ).items == {"x", "o", "f2"}  # the key is the obligation's
    assert last(*opened, here, advance).error == "conflict"
    assert last(*opened, {"resolve": {"target": "o"}}, advance).error == "conflict"


def test_what_was_not_carried_out_has_no_name() -> None:
    refused = {"retract": {"target": "gone"}, "name": "n"}
    for step in ({"withdraw": {"target": "n"}}, asking(READ, known_at="n")):
        assert run(refused, step)[-1].error == "unknown_item"


# §6


def test_departing_again_and_joining_void_a_ticket() -> None:
    other = {"depart": {"principal": "P", "role": "dev", "task": "other"}}
    assert last(DEPART, DEPART, ADMIT).decision == "admitted"
    assert last(DEPART, JOIN, ADMIT).error == "ticket_consumed"
    assert last(DEPART, asking(JOIN, valid_at=DAY[2]), ADMIT).decision == "admitted"  # a preview voids nothing
    assert last(DEPART, other, ADMIT, ADMIT).error == "ticket_consumed"  # the last ticket, though the first is open
    assert last(ADMIT).error == "not_absent"


def test_a_ticket_ends_at_exactly_its_expiry_fixed_when_signed() -> None:
    policy = {"ticket_days": 3}
    longer = {"policy": {"ticket_days": 30}}
    assert last(DEPART, longer, asking(ADMIT, "2026-03-04T07:59:59.999999Z"), policy=policy).decision == "admitted"
    assert last(DEPART, longer, asking(ADMIT, DAY[4]), policy=policy).error == "ticket_expired"


def test_the_faults_of_admit_come_in_their_order() -> None:
    loose: dict[str, Any] = {"policy": {"max_items": 65}}
    early: dict[str, Any] = {"known_at": "2026-02-01T00:00:00Z"}
    lost = {"withdraw": {"target": "held"}}
    held = {"grant": {"principal": "P", "role": "dev"}, "name": "held"}
    header: dict[str, Any] = {"principals": {"P": []}}
    assert last(held, DEPART, lost, asking(ADMIT, **loose, **early), **header).error == "policy_loosened"
    assert last(held, DEPART, lost, asking(ADMIT, **early), **header).error == "invalid_record"
    assert last(held, DEPART, lost, ADMIT, **header).decision == "refused"
    assert last(held, DEPART, lost, ADMIT, held | {"name": "again"}, ADMIT, **header).decision == "admitted"


def test_the_pool_holds_the_checkpoint_the_absence_and_what_came_to_stand() -> None:
    steps = [
        record("kept"),
        record("old", key="k"),
        record("new", key="k"),
        record("later", valid_from=DAY[3]),
        DEPART,
        {"at": DAY[4], "retract": {"target": "new"}},
        {"revoke": {"target": "kept"}},
        record("fleeting", valid_to=DAY[5]),
    ]
    pool = last(*steps, asking(ADMIT, DAY[6])).rejected
    assert pool == {
        "kept": {"revoked"},
        "old": set(),
        "new": {"retracted"},
        "later": set(),
        "fleeting": {"expired"},
    }


# §7


def test_nobody_reads_with_yesterdays_rights() -> None:
    steps = [record("a"), DEPART, {"at": DAY[2], "deny": {"role": "dev", "read": ["open"]}}]
    assert last(*steps, asking(READ, valid_at=DAY[1])).items == set()
    assert last(*steps, asking(ADMIT, valid_at=DAY[1])).rejected == {"a": {"denied"}}


def test_a_source_out_of_reach_is_out_of_reach_however_far() -> None:
    steps = [record("a", scope="shut")]
    steps += [record(name, derived_from=[source]) for name, source in (("b", "a"), ("c", "b"))]
    rejected = last(*steps, JOIN).rejected
    assert rejected == {
        "a": {"scope_not_granted"},
        "b": {"source_not_readable"},
        "c": {"source_not_readable"},
    }


def test_a_derived_item_lives_by_its_sources_receipts() -> None:
    derived = [record("s", supports=["d"]), record("m", derived_from=["s"], receipts=[], supports=["d"])]
    assert last(*derived, JOIN).rejected == {"s": set(), "m": set()}
    dead = last(*derived, {"revoke": {"target": "r_s"}}, JOIN).rejected
    assert dead == {
        "s": {"receipt_revoked"},
        "m": {"missing_receipt"},
    }  # a bare support is never unbound by that
    claims = record("m", derived_from=["s"], receipts=[], supports=["d", "more"])
    assert last(derived[0], claims, JOIN).rejected == {"s": set(), "m": {"unbound_support"}}
    circle = [record(a, derived_from=[b], receipts=[])["record"] for a, b in (("a", "b"), ("b", "a"))]
    assert last({"record": circle}, JOIN).rejected == {
        name: {"missing_receipt", "premise_invalid"} for name in ("a", "b")
    }


def test_a_receipt_revoked_from_an_instant_on_is_dead_from_there() -> None:
    named = record("a", supports=[{"dependency": "d", "receipt": "r_a"}])
    steps = [named, {"revoke": {"target": "r_a", "effective_from": DAY[3]}}]
    assert last(*steps, JOIN).rejected == {"a": set()}
    assert last(*steps, asking(JOIN, valid_at=DAY[3])).rejected == {"a": {"receipt_revoked", "unbound_support"}}


def test_what_is_proposed_is_unverified_until_the_same_pair_is_settled() -> None:
    policy = {"verification": "required", "fill": "none"}

    def says(word: str, later: str = "new", **fields: Any) -> dict[str, Any]:
        return {"verdict": {"later": later, "earlier": "old", "says": word} | fields}

    steps = [record("old"), record("new"), record("third"), says("proposed")]

    def old(*more: dict[str, Any]) -> Any:
        rejected = last(*steps, *more, JOIN, policy=policy).rejected
        assert rejected is not None
        return rejected["old"]

    assert old() == {"unverified"}
    assert old(says("compatible")) == set()
    assert old(says("compatible", later="third")) == {"unverified"}
    assert old(says("compatible", task="other")) == {"unverified"}
    assert old(says("invalidates")) == {"invalidated"}
    assert old(says("compatible", confidence=0.64)) == {"unverified"}
    assert old(says("compatible", confidence=0.65)) == set()
    assert old(says("compatible") | {"name": "v"}, {"withdraw": {"target": "v"}}) == {"unverified"}
    assert old({"retract": {"target": "new"}}) == set()


@pytest.mark.parametrize(
    ("quote", "there"),
    [
        ("a caf\u00e9 is", True),
        ("a cafe\u0301  \n is", True),
        ("receipt of new", True),
        ("A caf\u00e9", False),
        ("cafe", False),
    ],
)
def test_a_quote_is_compared_after_nfc_and_whitespace_folding(quote: str, there: bool) -> None:
    steps = [record("old"), record("new", content="a\tcaf\u00e9 is here")]
    no = {"verdict": {"later": "new", "earlier": "old", "says": "invalidates", "quote": quote}}
    assert last(*steps, no, READ).items == ({"new"} if there else {"old", "new"})


# §9


def test_what_is_mandatory_fits_together_or_nothing_is_selected() -> None:
    steps = [owes("one"), owes("two", "d!"), record("e", supports=["d"])]  # 3 + 1 + 3 + 1 characters, then 1
    fits = last(*steps, JOIN, policy={"max_chars": 9, "fill": "none"})
    assert (fits.decision, fits.admitted) == ("admitted", {"one", "f_one", "two", "f_two", "e"})
    short = last(*steps, JOIN, policy={"max_chars": 8, "coverage": 0.5, "critical": 0, "fill": "none"})
    assert (short.decision, short.coverage, short.uncovered) == ("admitted", 0.5, {"d"})
    over = last(*steps, JOIN, policy={"max_chars": 7, "coverage": 0, "critical": 0})
    assert (over.decision, over.coverage, over.critical) == ("blocked", 0.5, 0)
    assert over.selection == {name: {"mandatory_over_budget"} for name in ("one", "f_one", "two", "f_two")}


def test_an_inadmissible_obligation_takes_no_budget_and_still_counts() -> None:
    steps = [owes("o", "d", content="far too long"), owes("p")]
    answer = last(*steps, JOIN, policy={"max_item_chars": 5, "max_chars": 3, "coverage": 0, "critical": 0})
    assert answer.selection == {"o": {"obligation_not_admissible"}}
    assert (answer.decision, answer.coverage) == ("blocked", 0.5)
    hidden = last(owes("o", "d", scope="shut"), JOIN)
    assert hidden.selection == {"o": {"obligation_not_admissible", "missing_frontier"}}
    assert hidden.uncovered == {"d"}


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ([("a", 2, ["d"], 1), ("b", 5, ["d", "e!"], 1)], {"b"}),  # 1/2 < 3/5, and nothing is left to cover
        ([("a", 2, ["d"], 1), ("b", 7, ["d", "e!"], 1)], {"a", "b"}),  # 1/2 > 3/7; then b adds 2/7
        ([("a", 4, ["d", "e!"], 1), ("b", 4, ["d", "e!"], 2)], {"b"}),  # later valid_from
        ([("a", 3, ["d", "e!"], 1), ("b", 3, ["d", "e!"], 1)], {"a"}),  # smaller id
        (
            [("a", 6, ["d", "e!"], 2), ("b", 4, ["e!"], 1)],
            {"a", "b"},
        ),  # 3/6 = 2/4: lower cost first, then a for d
        ([("a", 9, ["d", "e!"], 1), ("b", 3, ["d"], 1)], {"b"}),  # a would cover more but no longer fits
    ],
)
def test_evidence_is_chosen_by_exact_weight_per_character(
    candidates: list[tuple[str, int, list[str], int]], chosen: set[str]
) -> None:
    steps = [
        record(name, content="x" * length, supports=[d.rstrip("!") for d in supports], valid_from=DAY[day])
        for name, length, supports, day in candidates
    ]
    policy = {"max_chars": 12, "coverage": 0, "critical": 0, "fill": "none"}
    answer = last(*steps, owes("o", "d", "e!"), asking(JOIN, DAY[2]), policy=policy)
    assert answer.admitted == {"o", "f_o", *chosen}


def test_what_is_left_is_filled_by_recency_with_what_still_fits() -> None:
    steps = [
        record("old", content="xx", valid_from=DAY[1]),
        record("big", content="xxxx", valid_from=DAY[2]),
        record("mid", content="xx", valid_from=DAY[2]),
        record("new", content="xxx", valid_from=DAY[3]),
    ]
    answer = last(*steps, asking(JOIN, DAY[4]), policy={"max_chars": 7, "fill": "recency"})
    assert answer.admitted == {
        "new",
        "mid",
        "old",
    }  # of one valid_from the later epoch first; big no longer fits
    assert answer.selection == {"big": {"not_selected"}}


# §10, §11


REMEMBER = {"remember": {"id": "m", "principal": "P", "content": "m", "grounded_in": ["a"]}}


def test_recall_gives_what_the_view_grounds_until_exactly_its_expiry() -> None:
    steps = [
        record("a"),
        record("b"),
        REMEMBER,
        {"remember": REMEMBER["remember"] | {"id": "n", "grounded_in": ["b"]}},
    ]
    policy = {"fill": "recency", "max_items": 1, "view_minutes": 5}
    assert last(*steps, JOIN, RECALL, policy=policy).recalled == {"n"}
    assert last(*steps, JOIN, asking(RECALL, "2026-03-01T08:05:00Z"), policy=policy).error == "view_expired"


def test_recall_gives_nothing_to_the_absent_whatever_the_views_state() -> None:
    steps = [record("a"), REMEMBER, JOIN, DEPART]
    elsewhere = {"depart": {"principal": "P", "role": "dev", "task": "other"}}
    policy = {"fill": "recency"}
    assert last(*steps, asking(RECALL, DAY[5]), policy=policy).recalled == set()
    assert last(*steps[:3], elsewhere, RECALL, policy=policy).recalled == {"m"}
    assert last(*steps[:3], elsewhere, asking(RECALL, DAY[5]), policy=policy).error == "view_expired"
    assert last(*steps, asking(ADMIT, valid_at=DAY[2]), RECALL, policy=policy).recalled == set()
    assert last(asking(RECALL, principal="Nobody")).recalled == set()


def test_a_view_is_stale_when_an_item_fails_a_gate_or_new_work_is_not_covered() -> None:
    view = [record("a", supports=["d"]), REMEMBER, JOIN]
    policy = {"fill": "recency"}
    assert last(*view, {"revoke": {"target": "r_a"}}, RECALL, policy=policy).error == "view_stale"
    assert last(*view, owes("o", "d"), RECALL, policy=policy).recalled == {"m"}
    assert last(*view, owes("o", "e"), RECALL, policy=policy).error == "view_stale"
    assert last(*view, owes("o", scope="shut"), RECALL, policy=policy).recalled == {"m"}
    assert last(*view, owes("o", "e", role="other"), RECALL, policy=policy).recalled == {"m"}
    later = {"policy": {"kinds": ["constraint"]}}  # the view keeps its own policy
    assert last(*view, later, RECALL, policy=policy).recalled == {"m"}


def test_a_reset_view_opens_and_gives_nothing_while_the_role_is_held() -> None:
    policy = {"on_incomplete": "reset"}
    header = {"principals": {"P": []}, "policy": policy}
    held = {"grant": {"principal": "P", "role": "dev"}, "name": "held"}
    steps = [held, owes("o", "d"), DEPART, ADMIT]
    assert last(*steps, **header).decision == "reset"
    assert last(*steps, RECALL, **header).recalled == set()
    assert last(*steps, {"withdraw": {"target": "held"}}, RECALL, **header).error == "view_stale"
    assert last(*steps, ADMIT, **header).error == "ticket_consumed"


# §12


def test_erasure_takes_what_is_derived_at_every_known_at_and_leaves_a_gap() -> None:
    steps = [
        record("old", key="k"),
        record("a", key="k"),
        record("b", derived_from=["a"]),
        {"record": record("c", derived_from=["b"])["record"], "name": "before"},
        record("other"),
        DEPART,
        {"erase": {"target": "a", "reason": "asked for"}},
    ]
    assert last(*steps, READ).items == {"other"}
    assert last(*steps, asking(READ, known_at="before")).items == set()
    rejected = last(*steps, ADMIT).rejected
    assert rejected is not None
    assert rejected["a"] == {"erased"}
    assert rejected["b"] == rejected["c"] == {"erased", "premise_invalid"}
