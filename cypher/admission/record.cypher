// Records one return decision with every item's reasons, the view it issued, and the departure it answers.
// Parameters: $workspace, $cycle (a map of its properties), $checkpoint (null when there is none), $rejected (maps: id,
// gates, reasons, detail), $view (null, or a map: jti, digest, expires_at), $admits (maps: id, why, rank).
// Plan: eager, since the view is created before the items it admits are looked for.
CREATE (k:ReturnCycle)
SET k = $cycle, k.workspace = $workspace
WITH k
CALL (k) {
  MATCH (c:Checkpoint {workspace: $workspace, id: $checkpoint})
  CREATE (k)-[:RETURNED_FROM]->(c)
}
CALL (k) {
  UNWIND $rejected AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.id})
  CREATE (k)-[:REJECTED {gates: row.gates, reasons: row.reasons, detail: row.detail}]->(m)
}
CALL (k) {
  WITH k WHERE $view IS NOT NULL
  CREATE (v:ReturnView)
  SET v = $view, v.workspace = $workspace
  CREATE (k)-[:ISSUED]->(v)
  WITH v
  UNWIND $admits AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.id})
  CREATE (v)-[:ADMITS {why: row.why, rank: row.rank}]->(m)
}
RETURN k.id AS id
