// Verdicts with everything their digests cover.
// Parameters: $workspace, $ids, $latest (unused: what undid it stands in the log, however late).
UNWIND $ids AS id
CALL (id) {
  MATCH (a)-[v:PROPOSED {workspace: $workspace, id: id}]->(b) RETURN a, v, b
  UNION ALL
  MATCH (a)-[v:INVALIDATES {workspace: $workspace, id: id}]->(b) RETURN a, v, b
  UNION ALL
  MATCH (a)-[v:CLEARED {workspace: $workspace, id: id}]->(b) RETURN a, v, b
  UNION ALL
  MATCH (a)-[v:UNVERIFIED {workspace: $workspace, id: id}]->(b) RETURN a, v, b
  UNION ALL
  MATCH (a)-[v:RESTORES {workspace: $workspace, id: id}]->(b) RETURN a, v, b
}
RETURN collect({
  id: id,
  type: type(v),
  stored: properties(v),
  later: a.id,
  earlier: b.id,
  begins: a.valid_from,
  blanked: a.erased_epoch IS NOT NULL OR b.erased_epoch IS NOT NULL,
  retired: v.retired_epoch = 9223372036854775807 OR EXISTS {
    MATCH (e:Epoch {workspace: $workspace, number: v.retired_epoch})
    WHERE 'withdraw ' + id IN e.subjects
  }
}) AS found
