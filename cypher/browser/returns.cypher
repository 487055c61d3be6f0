// 1 returns: every one that had an item before it
// Start here: the table's `cycle` is the $cycle of the other queries. REJECTED kept the item out, with the reasons; ADMITS
// showed it in a view. A return that draws neither let the item pass and released nothing, or had no use for it.
// Parameters: $workspace, $item.
// :param workspace => 'trip'
// :param item => 'p0'
MATCH (m:WorkItem {workspace: $workspace, id: $item})
MATCH (k:ReturnCycle {workspace: $workspace})
WHERE k.id >= '' AND m.id IN k.pool
OPTIONAL MATCH kept_out = (k)-[rejected:REJECTED]->(m)
OPTIONAL MATCH shown = (k)-[:ISSUED]->(:ReturnView)-[:ADMITS]->(m)
RETURN k.id AS cycle,
  k.principal AS principal,
  k.task AS task,
  k.decision AS decision,
  coalesce(rejected.reasons, []) AS reasons,
  datetime({epochMillis: 0})
    + duration({seconds: k.authorized_at / 1000000, microseconds: k.authorized_at % 1000000}) AS at,
  m AS item,
  k AS return,
  kept_out,
  shown
ORDER BY k.authorized_at DESC, cycle
