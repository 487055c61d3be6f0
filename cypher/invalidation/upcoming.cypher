// Items that hold only from a later moment on: a sweep judges them ahead.
// Parameters: $workspace, $task (null: of no task), $epoch, $valid_at (microseconds).
MATCH (m:WorkItem {workspace: $workspace})
USING INDEX SEEK m:WorkItem(workspace, epoch)
WHERE m.epoch <= $epoch < m.retired_epoch AND m.valid_from > $valid_at
  AND m.kind IN ['fact', 'constraint'] AND m.content IS NOT NULL
  AND (m.task IS NULL OR m.task = $task)
RETURN collect(m.id) AS ids
