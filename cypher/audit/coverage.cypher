// What a return owed and what covered it: each obligation of its pool that stood and was its role's, with every dependency
// it requires, whether what was selected supports it, the items of the pool that do, and its frontiers.
// Parameters: $workspace, $cycle.
// :param workspace => 'trip'
// :param cycle => 'cycle-1'
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
UNWIND k.pool AS id
MATCH (o:WorkItem {workspace: $workspace, id: id, kind: 'obligation'})
WHERE NOT EXISTS {
  MATCH (k)-[rejected:REJECTED]->(o)
  WHERE any(reason IN rejected.reasons WHERE reason IN [
    'not_yet_valid', 'expired', 'superseded', 'revoked', 'resolved', 'retracted', 'erased', 'invalidated',
    'premise_invalid', 'wrong_role', 'wrong_purpose'
  ])
}
RETURN o.id AS obligation,
  COLLECT {
    MATCH (o)-[need:REQUIRES]->(d:Dependency)
    RETURN {
      dependency: d.id, critical: need.critical, covered: NOT d.id IN k.uncovered,
      supporters: COLLECT {
        MATCH (m:WorkItem)-[:SUPPORTS]->(d)
        WHERE m.id IN k.pool
        RETURN DISTINCT m.id
        ORDER BY m.id
      }
    }
    ORDER BY d.id
  } AS needs,
  COLLECT {
    MATCH (f:WorkItem)-[:FRONTIER_OF]->(o)
    WHERE f.id IN k.pool
    RETURN f.id
    ORDER BY f.id
  } AS frontiers
ORDER BY obligation
