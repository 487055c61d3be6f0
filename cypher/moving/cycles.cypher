// Some return cycles, by id, with all that hangs on them: the departure, the rejections, the view, what it admits, who
// opened it. Nothing of this is in the log of epochs.
// Parameters: $workspace, $after (an id; '' at first), $latest (the last epoch that travels), $limit.
MATCH (k:ReturnCycle {workspace: $workspace})
WHERE k.id > $after AND k.authorized_epoch <= $latest
WITH k
ORDER BY k.workspace, k.id
LIMIT $limit
RETURN properties(k) AS cycle,
  head(COLLECT { MATCH (k)-[:RETURNED_FROM]->(c:Checkpoint) RETURN c.id }) AS departed,
  COLLECT { MATCH (k)-[r:REJECTED]->(m:WorkItem) RETURN [m.id, r.gates, r.reasons, r.detail] ORDER BY m.id } AS rejected,
  head(COLLECT { MATCH (k)-[:ISSUED]->(v:ReturnView) RETURN properties(v) }) AS view,
  COLLECT { MATCH (k)-[:ISSUED]->(:ReturnView)-[a:ADMITS]->(m:WorkItem) RETURN [m.id, a.why, a.rank] ORDER BY a.rank } AS admits,
  COLLECT { MATCH (k)-[:ISSUED]->(:ReturnView)<-[o:OPENED]-(p:Principal) RETURN [p.id, o.at] ORDER BY o.at, p.id } AS opened
ORDER BY cycle.id
