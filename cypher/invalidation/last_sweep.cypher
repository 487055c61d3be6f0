// The last finished sweep for a task by this scanner and verifier.
// Parameters: $workspace, $task ('' for no task), $method.
MATCH (s:Sweep {workspace: $workspace, task: $task, method: $method})
RETURN s.epoch AS epoch, s.valid_at AS valid_at
ORDER BY s.epoch DESC, s.valid_at DESC
LIMIT 1
