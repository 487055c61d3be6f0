// Revocations with everything their digests cover.
// Parameters: $workspace, $ids, $latest (unused: what undid it stands in the log, however late).
UNWIND $ids AS id
MATCH (v:Revocation {workspace: $workspace, id: id})
RETURN collect({
  id: v.id,
  stored: properties(v),
  targets: COLLECT { MATCH (v)-[:REVOKES]->(target) RETURN target.id },
  retired: v.retired_epoch = 9223372036854775807 OR EXISTS {
    MATCH (e:Epoch {workspace: v.workspace, number: v.retired_epoch})
    WHERE 'withdraw ' + v.id IN e.subjects
  }
}) AS found
