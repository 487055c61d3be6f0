// Private memories with everything their digests cover.
// Parameters: $workspace, $ids, $latest (unused: what undid it stands in the log, however late).
UNWIND $ids AS id
MATCH (x:Experience {workspace: $workspace, id: id})
RETURN collect({
  id: x.id,
  stored: properties(x),
  strange: EXISTS {
    MATCH (x)-[:GROUNDED_IN]->(m)
    WHERE m.workspace IS NULL OR m.workspace <> x.workspace
  },
  grounded_in: COLLECT { MATCH (x)-[:GROUNDED_IN]->(m:WorkItem) RETURN m.id },
  erased: x.erased_epoch IS NULL OR EXISTS {
    MATCH (x)-[:GROUNDED_IN]->(:WorkItem)<-[:ERASES]-(erasure:Erasure)
    WHERE erasure.epoch = x.erased_epoch
  }
}) AS found
