// 6 blocked: the obligations that blocked a return
// Each open one with what it needs and did not get, and the items that could have given it, with why they were rejected.
// Nothing for a return that was admitted: $cycle is a blocked one's, from `returns`.
// Parameters: $workspace, $cycle.
// :param workspace => 'trip'
// :param cycle => 'cycle-1'
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
UNWIND k.pool AS id
MATCH (o:WorkItem {workspace: $workspace, id: id, kind: 'obligation'})
WITH k, o,
  [reason IN ['missing_frontier', 'mandatory_over_budget', 'obligation_not_admissible']
    WHERE reason + ' ' + o.id IN k.left_out] AS selection
WHERE size(selection) > 0 OR NOT EXISTS { (k)-[:REJECTED]->(o) }
  AND EXISTS { (o)-[:REQUIRES]->(d:Dependency WHERE d.id IN k.uncovered) }
RETURN o.id AS obligation_id,
  [(o)-[:REQUIRES]->(d:Dependency) WHERE d.id IN k.uncovered | d.id] AS missing,
  selection,
  k AS return,
  o AS obligation,
  COLLECT {
    MATCH path = (o)-[:REQUIRES]->(d:Dependency)
    WHERE d.id IN k.uncovered
    RETURN path
  } AS uncovered,
  COLLECT {
    MATCH path = (o)-[:REQUIRES]->(d:Dependency)<-[:SUPPORTS]-(m:WorkItem)<-[:REJECTED]-(k)
    WHERE d.id IN k.uncovered
    RETURN path
  } AS rejected,
  COLLECT {
    MATCH path = (o)<-[:FRONTIER_OF]-(f:WorkItem)
    WHERE f.id IN k.pool
    RETURN path
  } AS frontier,
  COLLECT {
    MATCH path = (k)-[:REJECTED]->(o)
    RETURN path
  } AS inadmissible
ORDER BY o.id
