// One return cycle: its policy, and what its view admitted, each item with the reason why.
// Parameters: $workspace, $cycle.
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
OPTIONAL MATCH (k)-[:ISSUED]->(v:ReturnView)
RETURN k.policy AS policy, k.valid_at AS valid_at, v.jti AS jti,
  COLLECT {
    MATCH (v)-[a:ADMITS]->(m:WorkItem)
    RETURN m {
      .id, .key, .kind, .scope, .content, .digest, .content_digest, .length, .valid_from, .valid_to, why: a.why
    }
  } AS items
