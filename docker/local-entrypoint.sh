#!/bin/sh
# What compose.yml asks of the official image's entrypoint: settings from NEO4J_*, the first password, the server.
set -eu

conf=$NEO4J_HOME/conf/neo4j.conf
printf '%s\n' server.default_listen_address=0.0.0.0 server.directories.data=/data server.directories.logs=/logs >"$conf"
env | grep '^NEO4J_[a-z]' | while IFS='=' read -r name value; do
  name=$(echo "${name#NEO4J_}" | sed 's/_/./g; s/\.\./_/g') # one underscore stands for a dot, two for one
  echo "$name=$value" >>"$conf"
done

run() {
  class=$1 && shift
  java -cp "$NEO4J_HOME/lib/*" "org.neo4j.server.startup.$class" "$@"
}
case "${NEO4J_AUTH:-}" in
  neo4j/?*) run Neo4jAdminCommand dbms set-initial-password "${NEO4J_AUTH#neo4j/}" ;;
  *) echo "NEO4J_AUTH must be neo4j/PASSWORD." >&2 && exit 1 ;;
esac
unset NEO4J_AUTH
eval "exec $(run Neo4jCommand console --dry-run)"
