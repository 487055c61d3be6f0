"""Maintainers: pin the jars of one Neo4j release in tracegraph/embedded/neo4j-VERSION.lock.json.

    pip install jgo; python .ci/lock_neo4j.py 2026.09.0 [--browser 5.24.0]

jgo resolves the tree (about two minutes); every jar is then downloaded, compared with the repository's own
sha1 and pinned by size and sha256. What Maven itself leaves out of the tree is left out.
TRACEGRAPH_MAVEN names another repository than Maven Central.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jgo

from tracegraph.embedded import jars

# Test scope or optional by Neo4j's own poms, yet in jgo's tree; `mvn dependency:list` lacks them.
NOT_NEEDED = (
    "junit/",
    "net/bytebuddy/",
    "org/bouncycastle/",
    "org/hamcrest/",
    "org/mockito/",
    "org/objenesis/",
)


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as response:  # noqa: S310
        return bytes(response.read())


def _pin(path: str) -> dict[str, object]:
    url = f"{jars.repository()}/{path}"
    jar, sha1 = _read(url), _read(url + ".sha1").split()[0].decode()
    if hashlib.sha1(jar).hexdigest() != sha1:  # noqa: S324
        raise SystemExit(f"{path}: the repository's sha1 differs from the jar's")
    return {"path": path, "size": len(jar), "sha256": hashlib.sha256(jar).hexdigest()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--browser", default="5.24.0")
    args = parser.parse_args()
    roots = [
        f"org.neo4j:neo4j:{args.version}",
        f"org.neo4j.app:neo4j-server:{args.version}",
        f"org.neo4j.client:neo4j-browser:{args.browser}",
    ]
    found = jgo.resolve("+".join(roots), repositories={"central": jars.repository()})
    paths = [
        "/".join([*a.groupId.split("."), a.artifactId, a.version, a.filename]) for a in found if a.packaging == "jar"
    ]
    with ThreadPoolExecutor(8) as pool:
        pinned = list(pool.map(_pin, dict.fromkeys(p for p in paths if not p.startswith(NOT_NEEDED))))
    main_class = "CommunityEntryPoint" if args.version.startswith("5.") else "Neo4jCommunity"
    head = {"version": args.version, "main": f"org.neo4j.server.{main_class}", "roots": roots}
    lines = ",\n".join("    " + json.dumps(jar) for jar in pinned)
    target = Path(jars.__file__).with_name(f"neo4j-{args.version}.lock.json")
    target.write_text(json.dumps(head, indent=2)[:-2] + ',\n  "jars": [\n' + lines + "\n  ]\n}\n")
    sys.stdout.write(f"{target.name}: {len(pinned)} jars\n")


if __name__ == "__main__":
    main()
