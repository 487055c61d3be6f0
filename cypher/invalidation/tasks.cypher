// The tasks that items of a workspace belong to.
// Parameters: $workspace.
MATCH (i:Identity {workspace: $workspace})
USING INDEX SEEK i:Identity(workspace, task, scope, kind, key)
WHERE i.task > '' AND i.scope >= '' AND i.kind >= '' AND i.key >= ''
RETURN collect(DISTINCT i.task) AS tasks
