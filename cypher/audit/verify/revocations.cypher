// Revocations with everything their digests cover.
// Parameters: $workspace, $ids, $latest (the last epoch walked).
UNWIND $ids AS id
MATCH (v:Revocation {workspace: $workspace, id: id})
RETURN collect({
  id: v.id,
  stored: properties(v),
  targets: COLLECT { MATCH (v)-[:REVOKES]->(target) RETURN target.id },
  retired: coalesce(v.retired_epoch > $latest, false) OR EXISTS {
    MATCH (e:Epoch {workspace: v.workspace, number: v.retired_epoch})
    WHERE 'withdraw ' + v.id IN e.subjects
  }
}) AS found
