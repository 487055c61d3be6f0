// The batches handed to an endpoint, or about to be, whose answers are not collected.
// Parameters: $workspace.
MATCH (j:BatchJob {workspace: $workspace})
WHERE j.status <> 'collected'
RETURN properties(j) AS job
ORDER BY j.created_at, j.id
