// Records departures: who left in which role and task, and what stood and was readable at that epoch.
// Parameters: $workspace, $epoch, $recorded_at, $checkpoints (maps: id, principal, role, task, valid_at, item_ids,
// expires_at, digest).
UNWIND $checkpoints AS row
CREATE (c:Checkpoint)
SET c = row, c.workspace = $workspace, c.epoch = $epoch, c.recorded_at = $recorded_at
