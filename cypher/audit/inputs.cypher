// What a return was decided from and what it decided: its clocks, policy and departure, whether its principal was known and
// held the role at that moment, the recorded reasons, and which of its items were erased since.
// Parameters: $workspace, $cycle.
// :param workspace => 'trip'
// :param cycle => 'cycle-1'
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
OPTIONAL MATCH (k)-[:RETURNED_FROM]->(c:Checkpoint)
OPTIONAL MATCH (p:Principal {workspace: k.workspace, id: k.principal})
RETURN k {
    .*,
    valid_at: datetime({epochMillis: 0})
      + duration({seconds: k.valid_at / 1000000, microseconds: k.valid_at % 1000000}),
    authorized_at: datetime({epochMillis: 0})
      + duration({seconds: k.authorized_at / 1000000, microseconds: k.authorized_at % 1000000})
  } AS cycle,
  [k.valid_at, k.authorized_at] AS microseconds,
  CASE WHEN NOT k.joined THEN [c.id, c.epoch] END AS departed,
  coalesce(p.epoch <= k.authorized_epoch, false) AS known_principal,
  EXISTS {
    MATCH (p)-[held:HOLDS]->(:Role {workspace: k.workspace, id: k.role})
    WHERE held.epoch <= k.authorized_epoch < held.retired_epoch
      AND held.valid_from <= k.authorized_at < held.valid_to
  } AS held,
  COLLECT { MATCH (k)-[r:REJECTED]->(m:WorkItem) RETURN [m.id, r.reasons] ORDER BY m.id } AS rejected,
  COLLECT { MATCH (k)-[:ISSUED]->(:ReturnView)-[a:ADMITS]->(m:WorkItem) RETURN [m.id, a.why] ORDER BY a.rank } AS admits,
  COLLECT {
    MATCH (m:WorkItem {workspace: k.workspace})
    USING INDEX SEEK m:WorkItem(workspace, epoch)
    WHERE m.epoch <= k.epoch AND m.erased_epoch > k.authorized_epoch
    RETURN m.id
    ORDER BY m.id
  } AS erased
