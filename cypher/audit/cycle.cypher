// What one return decided, with every reason for every item of its pool: what an auditor sees, which is more than the
// caller was told.
// Parameters: $workspace, $cycle.
// :param workspace => 'trip'
// :param cycle => 'cycle-1'
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
RETURN k.id AS cycle_id,
  k.principal AS principal,
  k.role AS role,
  k.task AS task,
  k.purpose AS purpose,
  k.decision AS decision,
  k.reason AS reason,
  k.preview AS preview,
  k.epoch AS epoch,
  datetime({epochMillis: 0})
    + duration({seconds: k.valid_at / 1000000, microseconds: k.valid_at % 1000000}) AS valid_at,
  k.coverage AS coverage,
  k.critical AS critical,
  k.uncovered AS uncovered,
  k.pool AS pool,
  k.selected AS admitted,
  k.selection AS selection,
  COLLECT { MATCH (k)-[r:REJECTED]->(m:WorkItem) RETURN [m.id, r.reasons] } AS rejected
