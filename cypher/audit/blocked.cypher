// Which obligations blocked a return, and what was uncovered: for each return that was blocked or reset, every open
// obligation of its pool with what speaks against it, what it needs and does not get, and the items of the pool that could
// have covered that, each with why it was rejected.
// Parameters: $workspace; $principal, $task (null for all).
// :param workspace => 'trip'
// :param principal => null
// :param task => null
MATCH (k:ReturnCycle {workspace: $workspace})
WHERE k.id >= '' AND k.decision IN ['blocked', 'reset']
  AND ($principal IS NULL OR k.principal = $principal) AND ($task IS NULL OR k.task = $task)
CALL (k) {
  UNWIND k.pool AS id
  MATCH (o:WorkItem {workspace: k.workspace, id: id, kind: 'obligation'})
  OPTIONAL MATCH (k)-[rejected:REJECTED]->(o)
  WITH o, coalesce(rejected.reasons, []) AS reasons,
    [reason IN ['missing_frontier', 'mandatory_over_budget', 'obligation_not_admissible']
      WHERE reason + ' ' + o.id IN k.left_out] AS selection,
    COLLECT {
      MATCH (o)-[need:REQUIRES]->(d:Dependency)
      WHERE d.id IN k.uncovered
      RETURN {
        dependency: d.id, critical: need.critical,
        candidates: COLLECT {
          MATCH (m:WorkItem)-[:SUPPORTS]->(d)
          WHERE m.id IN k.pool
          OPTIONAL MATCH (k)-[against:REJECTED]->(m)
          RETURN {id: m.id, content: m.content, reasons: coalesce(against.reasons, [])}
          ORDER BY m.id
        }
      }
      ORDER BY d.id
    } AS uncovered
  WHERE none(reason IN reasons WHERE reason IN ['not_yet_valid', 'expired', 'superseded', 'revoked', 'resolved',
    'retracted', 'invalidated', 'premise_invalid', 'erased', 'wrong_purpose', 'wrong_role'])
  RETURN collect({id: o.id, content: o.content, reasons: reasons, selection: selection, uncovered: uncovered}) AS obligations
}
RETURN k.id AS cycle,
  k.principal AS principal,
  k.role AS role,
  k.task AS task,
  k.purpose AS purpose,
  k.decision AS decision,
  k.preview AS preview,
  datetime({epochMillis: 0})
    + duration({seconds: k.authorized_at / 1000000, microseconds: k.authorized_at % 1000000}) AS at,
  k.coverage AS coverage,
  k.critical AS critical,
  k.uncovered AS uncovered,
  [one IN obligations WHERE size(one.uncovered) > 0 OR size(one.selection) > 0] AS obligations
ORDER BY k.authorized_at DESC, cycle
