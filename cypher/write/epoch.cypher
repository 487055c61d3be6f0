// Closes a batch: raises the workspace's epoch and appends it to the commit log.
// Parameters: $workspace, $epoch (a map: number, batch_id, author, recorded_at, digest, previous, request, records,
// subjects, ids).
// Plan: eager, one row: the counter is raised before the log entry is appended.
MATCH (w:Workspace {id: $workspace})
SET w.epoch = $epoch.number
CREATE (e:Epoch)
SET e = $epoch, e.workspace = $workspace
