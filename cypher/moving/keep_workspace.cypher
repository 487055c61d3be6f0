// Keeps finished sweeps, how endpoints take requests, and batches that are out; what is kept already stays.
// Parameters: $workspace, $sweeps, $endpoints, $jobs (lists of property maps).
CALL () {
  UNWIND $sweeps AS one
  WITH one
  WHERE NOT EXISTS {
    MATCH (s:Sweep {workspace: $workspace, task: one.task, method: one.method, epoch: one.epoch})
    WHERE s.valid_at = one.valid_at
  }
  CREATE (s:Sweep)
  SET s = one, s.workspace = $workspace
}
CALL () {
  UNWIND $endpoints AS one
  MERGE (d:Endpoint {workspace: $workspace, endpoint: one.endpoint, model: one.model})
  ON CREATE SET d += one
}
CALL () {
  UNWIND $jobs AS one
  MERGE (j:BatchJob {workspace: $workspace, id: one.id})
  ON CREATE SET j += one
}
