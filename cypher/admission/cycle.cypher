// One return cycle: its policy, and why its view admitted each item.
// Parameters: $workspace, $cycle.
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
OPTIONAL MATCH (k)-[:ISSUED]->(v:ReturnView)
RETURN k.policy AS policy, k.valid_at AS valid_at, v.jti AS jti,
  COLLECT { MATCH (v)-[a:ADMITS]->(m:WorkItem) RETURN [m.id, a.why] } AS why
