// Takes back grants, denials, revocations and verdicts from this epoch on.
// Parameters: $workspace, $epoch, $author, $ids.
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
SET thing.retired_epoch = $epoch, thing.retired_by = $author
