// Grants and denies: who holds a role, and what a role may read and write. Both ends come to be when first named.
// Parameters: $workspace, $epoch, $author, $held (maps: principal, role and edge properties), $scoped (maps: role,
// scope, type (MAY_READ, MAY_WRITE, DENIED_READ or DENIED_WRITE) and edge properties).
// Plan: eager, since both ends come to be before the edges between them.
CALL () {
  UNWIND $held AS row
  MERGE (p:Principal {workspace: $workspace, id: row.principal})
  ON CREATE SET p.epoch = $epoch
  MERGE (r:Role {workspace: $workspace, id: row.role})
  ON CREATE SET r.epoch = $epoch
  CREATE (p)-[g:HOLDS]->(r)
  SET g = row.edge, g.workspace = $workspace, g.epoch = $epoch, g.retired_epoch = 9223372036854775807,
    g.author = $author
}
CALL () {
  UNWIND $scoped AS row
  MERGE (r:Role {workspace: $workspace, id: row.role})
  ON CREATE SET r.epoch = $epoch
  MERGE (s:Scope {workspace: $workspace, id: row.scope})
  ON CREATE SET s.epoch = $epoch
  CREATE (r)-[g:$(row.type)]->(s)
  SET g = row.edge, g.workspace = $workspace, g.epoch = $epoch, g.retired_epoch = 9223372036854775807,
    g.author = $author
}
