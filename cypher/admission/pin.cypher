// Where a return stands: the latest epoch, this moment and the policy, taken under the workspace's write lock; whether
// the principal is known and holds the role now; the departure that a ticket or a join refers to, and whether it is
// still open; the epoch that a wall time stands for. Alone, it pins an epoch: whatever that epoch and the ones
// before it wrote is then visible, which a read without the lock does not promise.
// Parameters: $workspace, $principal, $role, $task, $now (microseconds), $checkpoint (null on a join), $known_at
// (microseconds, or null).
// Plan: cartesian product of single rows, each found by its key; eager, one row: the lock is taken before anything is read.
MATCH (w:Workspace {id: $workspace})
SET w.lock = true
WITH w
OPTIONAL MATCH (e:Epoch {workspace: $workspace, number: w.epoch})
CALL () {
  MATCH (y:Policy {workspace: $workspace})
  USING INDEX SEEK y:Policy(workspace, revision)
  WHERE y.revision IS NOT NULL
  RETURN y
  ORDER BY y.workspace DESC, y.revision DESC
  LIMIT 1
}
WITH w.epoch AS epoch, properties(y) AS policy, coalesce(e.recorded_at, w.recorded_at) AS recorded_at
WITH epoch, policy, CASE WHEN recorded_at > $now THEN recorded_at ELSE $now END AS now
OPTIONAL MATCH (p:Principal {workspace: $workspace, id: $principal})
CALL () {
  OPTIONAL MATCH (c:Checkpoint {workspace: $workspace, principal: $principal, role: $role, task: $task})
  USING INDEX SEEK c:Checkpoint(workspace, principal, role, task, epoch)
  WHERE c.epoch >= 0
  RETURN c AS last
  ORDER BY c.workspace DESC, c.principal DESC, c.role DESC, c.task DESC, c.epoch DESC
  LIMIT 1
}
CALL () {
  OPTIONAL MATCH (then:Epoch {workspace: $workspace})
  USING INDEX SEEK then:Epoch(workspace, recorded_at, number)
  WHERE then.recorded_at <= $known_at AND then.number >= 0
  RETURN then.number AS known
  ORDER BY then.workspace DESC, then.recorded_at DESC, then.number DESC
  LIMIT 1
}
OPTIONAL MATCH (c:Checkpoint {workspace: $workspace, id: $checkpoint})
RETURN epoch, policy, now,
  p IS NOT NULL AS known_principal,
  EXISTS {
    MATCH (p)-[held:HOLDS]->(:Role {workspace: $workspace, id: $role})
    WHERE held.retired_epoch = 9223372036854775807 AND held.valid_from <= now < held.valid_to
  } AS held,
  c.id AS checkpoint,
  last.id AS last,
  last IS NOT NULL AND NOT EXISTS {
    MATCH (last)<-[:RETURNED_FROM]-(done:ReturnCycle)
    WHERE done.decision IN ['admitted', 'reset'] AND NOT done.preview
  } AS absent,
  coalesce(known, 0) AS known
