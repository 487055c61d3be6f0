// The workspaces of a database.
// Parameters: none.
MATCH (w:Workspace)
WHERE w.id IS NOT NULL
RETURN w.id AS id
ORDER BY w.id
