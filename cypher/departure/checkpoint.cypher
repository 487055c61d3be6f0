// One departure by its id.
// Parameters: $workspace, $checkpoint.
MATCH (c:Checkpoint {workspace: $workspace, id: $checkpoint})
RETURN c.id AS id, c.principal AS principal, c.role AS role, c.task AS task, c.epoch AS epoch,
  c.recorded_at AS recorded_at, c.expires_at AS expires_at
