"""The signing keys on disk: who can read them, how they come to be, and what a broken one does."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracegraph.errors import TracegraphError
from tracegraph.signing import Keys


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The most careless of shells."""
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_key_files_are_the_users_alone_whatever_the_umask(tmp_path: Path, open_umask: None) -> None:
    keys = Keys(tmp_path / "keys")
    keys.current()
    assert stat.S_IMODE(keys.folder.stat().st_mode) == 0o700
    assert set(modes(keys.folder).values()) == {0o600}
    keys.rotate()
    assert stat.S_IMODE(keys.folder.stat().st_mode) == 0o700
    assert set(modes(keys.folder).values()) == {0o600}
    assert len(modes(keys.folder)) == 3  # two keys, and which of them signs


def test_a_rotated_key_keeps_verifying_and_can_sign_no_more(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    old, token = keys.current(), keys.sign("view", {"sub": "A1"})
    new = keys.rotate()
    for again in (keys, Keys(keys.folder)):
        assert again.current() == new != old
        assert again.verify("view", token)["sub"] == "A1"
    assert "d" not in json.loads((keys.folder / f"{old}.json").read_text())
    assert json.loads((keys.folder / f"{new}.json").read_text())["d"]


def test_many_that_ask_first_at_once_get_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        for round_ in range(20):
            folder = tmp_path / str(round_)
            kids = list(pool.map(lambda _, folder=folder: Keys(folder).current(), range(8)))
            assert len(set(kids)) == 1
            assert sorted(modes(folder)) == sorted(["current", f"{kids[0]}.json"])


@pytest.mark.parametrize("text", ["", "\n", "unknown", "../elsewhere", "x" * 5000, "\0"])
def test_a_broken_pointer_to_the_signing_key_is_unavailable(tmp_path: Path, text: str) -> None:
    keys = Keys(tmp_path / "keys")
    keys.current()
    (keys.folder / "current").write_text(text)
    with pytest.raises(TracegraphError) as error:
        Keys(keys.folder).sign("view", {"sub": "A1"})
    assert error.value.code == "unavailable"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"kty": "oct", "k": "c2VjcmV0"}', "[" * 100_000])
def test_a_broken_key_file_is_unavailable_to_sign_and_unknown_to_verify(tmp_path: Path, text: str) -> None:
    keys = Keys(tmp_path / "keys")
    token = keys.sign("view", {"sub": "A1"})
    (keys.folder / f"{keys.current()}.json").write_text(text)
    fresh = Keys(keys.folder)
    with pytest.raises(TracegraphError) as error:
        fresh.sign("view", {"sub": "A1"})
    assert error.value.code == "unavailable"
    with pytest.raises(TracegraphError) as error:
        fresh.verify("view", token)
    assert error.value.code == "view_invalid"


def test_a_key_whose_private_half_is_gone_cannot_sign(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    kid = keys.current()
    file = keys.folder / f"{kid}.json"
    file.write_text(json.dumps({name: value for name, value in json.loads(file.read_text()).items() if name != "d"}))
    with pytest.raises(TracegraphError) as error:
        Keys(keys.folder).sign("view", {"sub": "A1"})
    assert error.value.code == "unavailable"


def test_a_key_folder_that_cannot_be_used_is_named_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("secret words")
    with pytest.raises(TracegraphError) as error:
        Keys(tmp_path / "file").sign("view", {"sub": "A1"})
    assert error.value.code == "unavailable"
    assert "secret words" not in str(error.value)


def test_no_representation_shows_a_private_key(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys")
    keys.sign("view", {"sub": "A1"})
    secret = json.loads((keys.folder / f"{keys.current()}.json").read_text())["d"]
    assert secret not in repr(keys) + repr(vars(keys)) + str(keys)
