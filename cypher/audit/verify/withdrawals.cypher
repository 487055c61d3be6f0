// What was withdrawn: every edge of a grant, a denial or a verdict, or a revocation.
// Parameters: $workspace, $ids, $latest (unused: a withdrawal is never undone).
UNWIND $ids AS id
CALL (id) {
  MATCH ()-[r:HOLDS {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:MAY_READ {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:MAY_WRITE {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:DENIED_READ {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:DENIED_WRITE {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:PROPOSED {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:INVALIDATES {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:CLEARED {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:UNVERIFIED {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH ()-[r:RESTORES {workspace: $workspace, id: id}]->() RETURN r AS thing
  UNION ALL
  MATCH (r:Revocation {workspace: $workspace, id: id}) RETURN r AS thing
}
WITH id, collect([thing.retired_epoch, thing.retired_by]) AS retired
RETURN collect({id: id, retired: retired}) AS found
