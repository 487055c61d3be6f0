// Who returns and from where: whether the principal is known and holds the role now, the departure that a ticket or a
// join refers to, whether it is still open, and the epoch that a wall time stands for.
// Parameters: $workspace, $principal, $role, $task, $now (microseconds), $checkpoint (null on a join), $known_at
// (microseconds, or null).
OPTIONAL MATCH (p:Principal {workspace: $workspace, id: $principal})
CALL () {
  OPTIONAL MATCH (c:Checkpoint {workspace: $workspace, principal: $principal, role: $role, task: $task})
  WHERE c.epoch >= 0
  RETURN c AS last
  ORDER BY c.workspace DESC, c.principal DESC, c.role DESC, c.task DESC, c.epoch DESC
  LIMIT 1
}
CALL () {
  OPTIONAL MATCH (e:Epoch {workspace: $workspace})
  WHERE e.recorded_at <= $known_at
  RETURN e.number AS known
  ORDER BY e.workspace DESC, e.recorded_at DESC, e.number DESC
  LIMIT 1
}
OPTIONAL MATCH (c:Checkpoint {workspace: $workspace, id: $checkpoint})
RETURN p IS NOT NULL AS known_principal,
  EXISTS {
    MATCH (p)-[held:HOLDS]->(:Role {workspace: $workspace, id: $role})
    WHERE held.retired_epoch = 9223372036854775807 AND held.valid_from <= $now < held.valid_to
  } AS held,
  c {.id, .principal, .role, .task, .epoch, .expires_at} AS checkpoint,
  last.id AS last,
  last IS NOT NULL AND NOT EXISTS {
    MATCH (last)<-[:RETURNED_FROM]-(done:ReturnCycle)
    WHERE done.decision IN ['admitted', 'reset'] AND NOT done.preview
  } AS absent,
  coalesce(known, 0) AS known
