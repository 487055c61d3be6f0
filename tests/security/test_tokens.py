"""What a forger can do to a ticket or a view without the key: nothing. No database.

Whatever is wrong with a token, the answer is the same refusal, and never another exception.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from joserfc import jws
from joserfc.jwk import OKPKey

from tracegraph.errors import TracegraphError
from tracegraph.signing import ISSUER, Keys, Purpose

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
CODES = {"ticket": "invalid_ticket", "view": "view_invalid"}
TYPES = {"ticket": "tracegraph-ticket+jws", "view": "tracegraph-view+jws"}
CLAIMS = {"sub": "A1", "workspace": "trip", "role": "itinerary", "task": "plan", "exp": 4102444800}


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys")


def refused(keys: Keys, purpose: Purpose, token: Any) -> bool:
    """Whether the token gets the one refusal that a forgery gets."""
    with pytest.raises(TracegraphError) as error:
        keys.verify(purpose, token)
    assert error.value.code == CODES[purpose]
    return True


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def forged(header: Any, claims: Any, signature: bytes = b"") -> str:
    parts = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in (header, claims)]
    return ".".join([encoded(parts[0]), encoded(parts[1]), encoded(signature)])


def honest(keys: Keys, purpose: Purpose) -> dict[str, str]:
    return {"alg": "EdDSA", "kid": keys.current(), "typ": TYPES[purpose]}


@pytest.mark.parametrize("purpose", PURPOSES)
def test_what_was_signed_is_read_back(keys: Keys, purpose: Purpose) -> None:
    assert keys.verify(purpose, keys.sign(purpose, CLAIMS)) == {"iss": ISSUER, **CLAIMS}


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_token_altered_in_any_byte_is_refused(keys: Keys, purpose: Purpose) -> None:
    token = keys.sign(purpose, CLAIMS)
    for at, char in enumerate(token):
        for other in {chr(ord(char) ^ 1), chr(ord(char) ^ 32), "=", "\n"} - {char}:
            refused(keys, purpose, token[:at] + other + token[at + 1 :])
        refused(keys, purpose, token[:at] + token[at + 1 :])
        refused(keys, purpose, token[:at] + "\n" + token[at:])
    for more in ("A", "=", "==", "\n", " ", ".", ".A", "\0"):
        refused(keys, purpose, token + more)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_the_last_characters_unused_bits_are_no_second_spelling(keys: Keys, purpose: Purpose) -> None:
    token = keys.sign(purpose, CLAIMS)
    for byte in range(128):
        if chr(byte) != token[-1]:
            refused(keys, purpose, token[:-1] + chr(byte))


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "", None, "HS256", "HS512", "RS256", "ES256", "Ed25519", "Ed448"]
)
def test_another_algorithm_is_refused_with_or_without_a_signature(keys: Keys, purpose: Purpose, alg: Any) -> None:
    token = keys.sign(purpose, CLAIMS)
    signature = token.rpartition(".")[2]
    header = {**honest(keys, purpose), "alg": alg}
    unsigned = forged(header, {"iss": ISSUER, **CLAIMS})
    refused(keys, purpose, unsigned)
    refused(keys, purpose, unsigned + signature)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_mac_with_the_public_key_as_its_secret_is_refused(keys: Keys, purpose: Purpose) -> None:
    file = json.loads((keys.folder / f"{keys.current()}.json").read_text())
    public = {name: file[name] for name in ("crv", "kty", "x")}
    raw = base64.urlsafe_b64decode(file["x"] + "=")
    body = forged({**honest(keys, purpose), "alg": "HS256"}, {"iss": ISSUER, **CLAIMS}).rpartition(".")[0]
    for secret in (
        raw,
        file["x"].encode(),
        json.dumps(public).encode(),
        json.dumps(public, separators=(",", ":")).encode(),
    ):
        refused(keys, purpose, f"{body}.{encoded(hmac.new(secret, body.encode(), hashlib.sha256).digest())}")


@pytest.mark.parametrize("purpose", PURPOSES)
def test_another_key_is_refused_whatever_it_calls_itself(keys: Keys, tmp_path: Path, purpose: Purpose) -> None:
    stranger = OKPKey.generate_key("Ed25519")
    payload = json.dumps({"iss": ISSUER, **CLAIMS}).encode()

    def signed(**header: Any) -> str:
        return jws.serialize_compact({**honest(keys, purpose), **header}, payload, stranger, algorithms=["EdDSA"])

    refused(keys, purpose, signed())  # under our key's name
    refused(keys, purpose, signed(kid=stranger.thumbprint()))
    refused(keys, purpose, Keys(tmp_path / "others").sign(purpose, CLAIMS))
    public = stranger.as_dict(private=False)
    refused(keys, purpose, jws.serialize_compact(
        {**honest(keys, purpose), "jwk": public}, payload, stranger, algorithms=["EdDSA"]
    ))  # fmt: skip


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize(
    "kid",
    [
        "", "unknown", "../current", "/etc/passwd", "current", ".", "..", "a/b", "a\\b", "a\0b", "x" * 300, "é" * 200,
        "\ud800",
        None, 5, True, [], {}, ["a"],
    ],
)  # fmt: skip
def test_an_unknown_kid_is_refused_and_names_no_other_file(keys: Keys, purpose: Purpose, kid: Any) -> None:
    header = {**honest(keys, purpose), "kid": kid}
    refused(keys, purpose, forged(header, {"iss": ISSUER, **CLAIMS}, b"s" * 64))


def test_a_key_file_planted_under_another_keys_name_is_refused(keys: Keys) -> None:
    stranger = OKPKey.generate_key("Ed25519")
    (keys.folder / "planted.json").parent.mkdir(parents=True, exist_ok=True)
    (keys.folder / "planted.json").write_text(json.dumps(stranger.as_dict(private=False)))
    header = {**honest(keys, "view"), "kid": "planted"}
    payload = json.dumps({"iss": ISSUER, **CLAIMS}).encode()
    refused(keys, "view", jws.serialize_compact(header, payload, stranger, algorithms=["EdDSA"]))


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_ticket_is_no_view_and_a_view_no_ticket(keys: Keys, purpose: Purpose) -> None:
    (other,) = set(PURPOSES) - {purpose}
    refused(keys, purpose, keys.sign(other, CLAIMS))


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize("claims", [[], "text", 5, None, {}, {"iss": "another"}, b"{", b"\xff", b""])
def test_a_signed_payload_that_is_no_claims_of_ours_is_refused(keys: Keys, purpose: Purpose, claims: Any) -> None:
    key = OKPKey.import_key(json.loads((keys.folder / f"{keys.current()}.json").read_text()))
    payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
    refused(keys, purpose, jws.serialize_compact(honest(keys, purpose), payload, key, algorithms=["EdDSA"]))


DEEP = b"[" * 100_000 + b"]" * 100_000
DEEP_ENOUGH = b"[" * 3_000 + b"]" * 3_000


@pytest.mark.parametrize("purpose", PURPOSES)
@pytest.mark.parametrize(
    "token",
    [
        None, 5, b"a.b.c", [], {}, object(), "", ".", "..", "...", "a.b.c", "\ud800.b.c", "\0.\0.\0", "é.é.é",
        "a" * 1_000_000, "." * 100_000,
        forged(DEEP, {}), forged(DEEP_ENOUGH, {}), forged(b'{"alg":' + DEEP + b"}", {}), forged([], {}),
        forged("text", {}), forged({"alg": "EdDSA", "kid": "k", "typ": "x", "crit": ["exp"], "b64": False}, {}),
    ],
    ids=lambda token: repr(token)[:24],
)  # fmt: skip
def test_what_is_no_token_at_all_is_refused_like_a_forged_one(keys: Keys, purpose: Purpose, token: Any) -> None:
    refused(keys, purpose, token)


def test_deep_claims_under_a_good_signature_are_refused(keys: Keys) -> None:
    key = OKPKey.import_key(json.loads((keys.folder / f"{keys.current()}.json").read_text()))
    for claims in (DEEP, DEEP_ENOUGH, b'{"iss": ' + DEEP_ENOUGH + b"}"):
        refused(keys, "view", jws.serialize_compact(honest(keys, "view"), claims, key, algorithms=["EdDSA"]))


def test_no_refusal_repeats_the_token(keys: Keys) -> None:
    token = keys.sign("view", {**CLAIMS, "purpose": "the secret purpose"})
    with pytest.raises(TracegraphError) as error:
        keys.verify("ticket", token)
    assert token not in str(error.value)
    assert not any(part in str(error.value) for part in token.split("."))
