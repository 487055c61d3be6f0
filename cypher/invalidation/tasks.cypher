// The tasks that items of a workspace belong to.
// Parameters: $workspace.
MATCH (i:Identity {workspace: $workspace})
WHERE i.task <> ''
RETURN collect(DISTINCT i.task) AS tasks
