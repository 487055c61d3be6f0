// Candidates of a return: what the checkpoint held, what was recorded in the absence, and the current version of every
// identity that this task or no task has touched. The gates decide which of the last belong to the pool.
// Parameters: $workspace, $task, $checkpoint (null on a join), $departed (epoch; $epoch on a join), $epoch, $valid_at
// (microseconds).
RETURN COLLECT {
    MATCH (c:Checkpoint {workspace: $workspace, id: $checkpoint})
    UNWIND c.item_ids AS id
    RETURN id
    UNION
    MATCH (m:WorkItem {workspace: $workspace})
    USING INDEX SEEK m:WorkItem(workspace, epoch)
    WHERE $departed < m.epoch <= $epoch AND (m.task IS NULL OR m.task = $task)
    RETURN m.id AS id
  } AS remembered,
  COLLECT {
    MATCH (i:Identity {workspace: $workspace})
    USING INDEX SEEK i:Identity(workspace, task, scope, kind, key)
    WHERE i.task IN ['', $task] AND i.scope >= '' AND i.kind >= '' AND i.key >= ''
    WITH DISTINCT i.scope AS scope, i.kind AS kind, i.key AS key
    CALL (scope, kind, key) {
      OPTIONAL MATCH (r:WorkItem {workspace: $workspace, scope: scope, kind: kind, key: key})
      USING INDEX SEEK r:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
      WHERE r.valid_from <= $valid_at AND r.epoch <= $epoch < r.retired_epoch AND r.place >= 0
        AND r.valid_to > r.recorded_at
      RETURN r AS regular
      ORDER BY r.workspace DESC, r.scope DESC, r.kind DESC, r.key DESC, r.valid_from DESC, r.epoch DESC, r.place DESC
      LIMIT 1
    }
    CALL (scope, kind, key, regular) {
      OPTIONAL MATCH (c:Correction {workspace: $workspace, scope: scope, kind: kind, key: key})
      USING INDEX SEEK c:Correction(workspace, scope, kind, key, valid_to)
      WHERE c.valid_from <= $valid_at < c.valid_to AND c.epoch <= $epoch < c.retired_epoch
        AND (regular IS NULL OR c.epoch > regular.epoch OR c.epoch = regular.epoch AND c.place > regular.place)
      RETURN c AS correction
      ORDER BY c.epoch DESC, c.place DESC
      LIMIT 1
    }
    WITH coalesce(correction, regular) AS current
    WHERE current IS NOT NULL AND (current.task IS NULL OR current.task = $task)
    RETURN current.id
  } AS current
