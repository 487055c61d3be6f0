"""Signing keys, and the two things that are signed: departure tickets and Return Views (compact JWS, Ed25519).

Keys are JWK files, mode 0600, in a folder of mode 0700: TRACEGRAPH_KEYS, else `keys` under the data directory. The
file `current` names the key that signs. Rotation leaves the public half of the old key, so old views still verify.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tracegraph.errors import Code, TracegraphError, Unavailable

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

Purpose = Literal["ticket", "view"]
ISSUER = "tracegraph"
_ALGORITHM = "EdDSA"
_TYPES: dict[Purpose, str] = {"ticket": "tracegraph-ticket+jws", "view": "tracegraph-view+jws"}
_CODES: dict[Purpose, Code] = {"ticket": "invalid_ticket", "view": "view_invalid"}

_UNUSABLE = (ValueError, TypeError, KeyError, OSError, RecursionError)
"""What a key file, or a token that names one, can raise when it is none."""

warnings.filterwarnings("ignore", message="EdDSA is deprecated")  # the name RFC 9864 replaces; the promise is EdDSA


def home() -> Path:
    """The data directory: TRACEGRAPH_HOME, else the user's."""
    override = os.environ.get("TRACEGRAPH_HOME")
    if override:
        return Path(override)
    import platformdirs

    return Path(platformdirs.user_data_dir("tracegraph"))


class Keys:
    """The keys of one folder. A missing folder gets its first key on first use."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or Path(os.environ.get("TRACEGRAPH_KEYS") or home() / "keys")
        self._read: dict[str, OKPKey] = {}

    def sign(self, purpose: Purpose, claims: Mapping[str, Any]) -> str:
        """A compact JWS over the claims' JSON."""
        from joserfc import jws
        from joserfc.errors import JoseError

        try:
            key = self._key(self.current())
            if not key.is_private:
                raise ValueError("the private half is missing")
        except (JoseError, *_UNUSABLE) as error:
            raise Unavailable(
                f"The signing key in {self.folder} cannot be used ({type(error).__name__}).",
                hint="Put the key back, or move the folder away: the next signature makes a new key.",
            ) from None
        header = {"alg": _ALGORITHM, "kid": key.thumbprint(), "typ": _TYPES[purpose]}
        payload = json.dumps({"iss": ISSUER, **claims}, separators=(",", ":"), ensure_ascii=False).encode()
        return jws.serialize_compact(header, payload, key, algorithms=[_ALGORITHM])

    def verify(self, purpose: Purpose, token: str) -> dict[str, Any]:
        """The claims that one of these keys signed for this purpose, else `invalid_ticket` or `view_invalid`."""
        from joserfc import jws
        from joserfc.errors import JoseError

        refused = TracegraphError(
            f"The {purpose}'s signature does not verify with any key of this installation.", code=_CODES[purpose]
        )
        try:
            header = jws.extract_compact(token.encode()).headers()
            if header != {"alg": _ALGORITHM, "typ": _TYPES[purpose], "kid": header.get("kid")}:
                raise refused
            key = self._key(str(header["kid"]))
            payload = jws.deserialize_compact(token.encode(), key, algorithms=[_ALGORITHM]).payload
            claims = json.loads(payload)
        except (JoseError, AttributeError, *_UNUSABLE):
            raise refused from None
        if not isinstance(claims, dict) or claims.get("iss") != ISSUER:
            raise refused
        return claims

    def current(self) -> str:
        """The id of the signing key, made on first use; safe by several processes at once."""
        pointer = self.folder / "current"
        try:
            return pointer.read_text().strip()
        except FileNotFoundError:
            kid = self._create()
        except OSError as error:
            raise Unavailable(f"The key folder cannot be read: {error.strerror}.") from None
        own = self.folder / f"{kid}.current"
        self._write(own.name, kid)
        try:
            os.link(own, pointer)  # whole at once, and only if no other process was faster
        except FileExistsError:
            (self.folder / f"{kid}.json").unlink()
            return self.current()
        finally:
            own.unlink()
        return kid

    def rotate(self) -> str:
        """Sign with a new key from now on; the old one keeps verifying but can sign no more. Returns the new id."""
        old = self.current()
        new = self._create()
        self._write("current.new", new)
        os.replace(self.folder / "current.new", self.folder / "current")
        public = json.dumps(self._key(old).as_dict(private=False))
        self._write(f"{old}.new", public)
        os.replace(self.folder / f"{old}.new", self.folder / f"{old}.json")
        self._read.pop(old, None)
        return new

    def _create(self) -> str:
        from joserfc.jwk import OKPKey

        key = OKPKey.generate_key("Ed25519")
        kid = key.thumbprint()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write(f"{kid}.json", json.dumps(key.as_dict(private=True)))
        except OSError as error:
            raise Unavailable(
                f"The key folder cannot be written: {error.strerror}.", hint="Set TRACEGRAPH_KEYS to a folder of yours."
            ) from None
        return kid

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())

    def _key(self, kid: str) -> OKPKey:
        from joserfc.jwk import OKPKey

        if kid not in self._read:
            if not kid or any(not (char.isalnum() or char in "-_") for char in kid):
                raise ValueError("not a key id")
            try:
                text = (self.folder / f"{kid}.json").read_text()
            except FileNotFoundError:
                raise KeyError(kid) from None
            key = OKPKey.import_key(json.loads(text))
            if key.thumbprint() != kid:
                raise ValueError("the key is not the one its file names")
            self._read[kid] = key
        return self._read[kid]


@cache
def default_keys() -> Keys:
    """The keys of this installation."""
    return Keys()
