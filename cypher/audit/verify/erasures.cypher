// Erasures with everything their digests cover, and whose words are there still.
// Parameters: $workspace, $ids (the erased targets), $latest (unused: an erasure is never undone).
UNWIND $ids AS id
MATCH (x:Erasure {workspace: $workspace, target: id})
RETURN collect({
  id: x.target,
  stored: properties(x),
  items: COLLECT { MATCH (x)-[:ERASES]->(m:WorkItem) RETURN m.id },
  kept: COLLECT {
    MATCH (x)-[:ERASES]->(m:WorkItem)
    WHERE m.content IS NOT NULL OR m.erased_epoch IS NULL OR m.erased_epoch > x.epoch
    RETURN m.id
  },
  texts: COLLECT {
    MATCH (x)-[:ERASES]->(:WorkItem)-[:BOUND_TO]->(r:Receipt)
    WHERE r.text IS NOT NULL AND NOT EXISTS {
      MATCH (r)<-[:BOUND_TO]-(other:WorkItem)
      WHERE other.erased_epoch IS NULL
    }
    RETURN DISTINCT r.id
  },
  memories: COLLECT {
    MATCH (x)-[:ERASES]->(:WorkItem)<-[:GROUNDED_IN]-(memory:Experience)
    WHERE memory.content IS NOT NULL AND memory.epoch < x.epoch
    RETURN DISTINCT memory.id
  }
}) AS found
