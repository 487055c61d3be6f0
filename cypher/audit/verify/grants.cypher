// Grants and denials: every edge of each, with both ends.
// Parameters: $workspace, $ids, $latest (unused: what undid it stands in the log, however late).
UNWIND $ids AS id
CALL (id) {
  MATCH (a)-[g:HOLDS {workspace: $workspace, id: id}]->(b) RETURN a, g, b
  UNION ALL
  MATCH (a)-[g:MAY_READ {workspace: $workspace, id: id}]->(b) RETURN a, g, b
  UNION ALL
  MATCH (a)-[g:MAY_WRITE {workspace: $workspace, id: id}]->(b) RETURN a, g, b
  UNION ALL
  MATCH (a)-[g:DENIED_READ {workspace: $workspace, id: id}]->(b) RETURN a, g, b
  UNION ALL
  MATCH (a)-[g:DENIED_WRITE {workspace: $workspace, id: id}]->(b) RETURN a, g, b
}
WITH id, collect({
  type: type(g), from: a.id, to: b.id, stored: properties(g),
  strange: coalesce(a.workspace <> $workspace OR b.workspace <> $workspace, true)
}) AS edges, g.retired_epoch AS retired_epoch
WITH id, collect({
  edges: edges,
  retired: retired_epoch = 9223372036854775807 OR EXISTS {
    MATCH (e:Epoch {workspace: $workspace, number: retired_epoch})
    WHERE 'withdraw ' + id IN e.subjects
  }
}) AS parts
RETURN collect({id: id, edges: reduce(all = [], part IN parts | all + part.edges), retired: all(part IN parts WHERE part.retired)}) AS found
