// Takes the workspace's write lock and reads what a batch or a pinned read builds on. Alone, it pins an epoch:
// whatever that epoch and the ones before it wrote is then visible, which a read without the lock does not promise.
// Parameters: $workspace, $batch: a map of ids (batch ids; those that were written before come back as `done`).
// Plan: cartesian product of single rows, each found by its key; eager, one row: the lock is taken before anything is read.
MATCH (w:Workspace {id: $workspace})
SET w.lock = true
WITH w
OPTIONAL MATCH (last:Epoch {workspace: $workspace, number: w.epoch})
CALL () {
  MATCH (y:Policy {workspace: $workspace})
  USING INDEX SEEK y:Policy(workspace, revision)
  WHERE y.revision IS NOT NULL
  RETURN y
  ORDER BY y.workspace DESC, y.revision DESC
  LIMIT 1
}
RETURN w.owner AS owner,
  w.epoch AS epoch,
  w.recorded_at AS created_at,
  last.recorded_at AS recorded_at,
  CASE w.epoch WHEN 0 THEN w.digest ELSE last.digest END AS previous,
  properties(y) AS policy,
  COLLECT {
    UNWIND $batch.ids AS id
    MATCH (done:Epoch {workspace: $workspace, batch_id: id})
    RETURN done {.number, .request, .digest, .recorded_at, .author, .batch_id, .ids}
  } AS done
