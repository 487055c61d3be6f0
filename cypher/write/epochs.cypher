// Closes batches: raises the workspace's epoch and appends each to the commit log.
// Parameters: $workspace, $batch: a map of epochs (maps: number, batch_id, author, recorded_at, digest, previous,
// request, records, subjects, ids; in order).
// Plan: eager, one row: the counter is raised before the log is appended to.
MATCH (w:Workspace {id: $workspace})
SET w.epoch = $batch.epochs[-1].number
WITH w
UNWIND $batch.epochs AS row
CREATE (e:Epoch)
SET e = row, e.workspace = $workspace
