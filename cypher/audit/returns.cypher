// The returns of a workspace, the newest first: who returned, what was decided, and with an item what came of it.
// Parameters: $workspace; $item (null for all returns), $limit.
// :param workspace => 'trip'
// :param item => null
// :param limit => 50
MATCH (k:ReturnCycle {workspace: $workspace})
WHERE k.id >= '' AND ($item IS NULL OR $item IN k.pool)
WITH k
ORDER BY k.authorized_at DESC, k.id
LIMIT toInteger($limit)
RETURN k.id AS cycle_id,
  k.principal AS principal,
  k.role AS role,
  k.task AS task,
  k.decision AS decision,
  k.preview AS preview,
  datetime({epochMillis: 0})
    + duration({seconds: k.authorized_at / 1000000, microseconds: k.authorized_at % 1000000}) AS at,
  coalesce($item IN k.selected, false) AS admitted,
  COLLECT {
    MATCH (k)-[r:REJECTED]->(m:WorkItem)
    WHERE m.id = $item
    UNWIND r.reasons AS reason
    RETURN reason
  } AS reasons
