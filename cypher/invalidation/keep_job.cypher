// Keeps a batch as it is now.
// Parameters: $workspace, $job (a map: id, batch, status, method, keys, requests (JSON), created_at, ...).
MERGE (j:BatchJob {workspace: $workspace, id: $job.id})
SET j += $job
