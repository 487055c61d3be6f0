// Private memories with everything their digests cover.
// Parameters: $workspace, $ids, $latest (the last epoch walked).
UNWIND $ids AS id
MATCH (x:Experience {workspace: $workspace, id: id})
RETURN collect({
  id: x.id,
  stored: properties(x),
  grounded_in: COLLECT { MATCH (x)-[:GROUNDED_IN]->(m:WorkItem) RETURN m.id },
  erased: x.erased_epoch IS NULL OR x.erased_epoch > $latest OR EXISTS {
    MATCH (x)-[:GROUNDED_IN]->(:WorkItem)<-[:ERASES]-(erasure:Erasure)
    WHERE erasure.epoch = x.erased_epoch
  }
}) AS found
