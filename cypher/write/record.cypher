// Records items and receipts with all their edges, and puts each version into its identity's order.
// Parameters: $workspace, $recorded_at, $batch: a map of items, receipts (lists of property maps), bindings, premises,
// sources, supports, replaced, requires, frontiers (lists of maps that name both ends); every row has its epoch. One
// map, because Neo4j plans a query anew for each combination of the sizes of its list parameters.
// Plan: eager, since every node of the batch exists before an edge or a neighbour is looked for; cartesian product
// of the two ends of one edge, each found by its id.
CALL () {
  UNWIND $batch.receipts AS row
  CREATE (r:Receipt)
  SET r = row, r.workspace = $workspace, r.retired_epoch = 9223372036854775807
}
CALL () {
  UNWIND $batch.items AS row
  CREATE (m:WorkItem)
  SET m = row, m.workspace = $workspace, m.recorded_at = $recorded_at,
    m.retired_epoch = 9223372036854775807
  FOREACH (_ IN CASE WHEN row.valid_to <= $recorded_at THEN [1] END | SET m:Correction)
}
CALL () {
  UNWIND $batch.items AS row
  WITH DISTINCT coalesce(row.task, '') AS task, row.scope AS scope, row.kind AS kind, row.key AS key
  MERGE (:Identity {workspace: $workspace, task: task, scope: scope, kind: kind, key: key})
}
CALL () {
  UNWIND $batch.bindings AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.item})
  MATCH (r:Receipt {workspace: $workspace, id: row.receipt})
  CREATE (m)-[:BOUND_TO {sha256: row.sha256, epoch: row.epoch}]->(r)
}
CALL () {
  UNWIND $batch.premises AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.item})
  MATCH (p:WorkItem {workspace: $workspace, id: row.target})
  CREATE (m)-[:DEPENDS_ON {epoch: row.epoch}]->(p)
}
CALL () {
  UNWIND $batch.sources AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.item})
  MATCH (s:WorkItem {workspace: $workspace, id: row.target})
  CREATE (m)-[:DERIVED_FROM {epoch: row.epoch}]->(s)
}
CALL () {
  UNWIND $batch.supports AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.item})
  MERGE (d:Dependency {workspace: $workspace, id: row.dependency})
  CREATE (m)-[s:SUPPORTS {epoch: row.epoch}]->(d)
  SET s.receipt = row.receipt
}
CALL () {
  UNWIND $batch.requires AS row
  MATCH (o:WorkItem {workspace: $workspace, id: row.item})
  MERGE (d:Dependency {workspace: $workspace, id: row.dependency})
  CREATE (o)-[:REQUIRES {critical: row.critical, epoch: row.epoch}]->(d)
}
CALL () {
  UNWIND $batch.frontiers AS row
  MATCH (f:WorkItem {workspace: $workspace, id: row.item})
  MATCH (o:WorkItem {workspace: $workspace, id: row.obligation})
  CREATE (f)-[:FRONTIER_OF {epoch: row.epoch}]->(o)
}
CALL () {
  UNWIND $batch.replaced AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.item})
  MATCH (old:WorkItem {workspace: $workspace, id: row.target})
  CREATE (m)-[:SUPERSEDES {epoch: row.epoch, named: true}]->(old)
}
CALL () {
  UNWIND $batch.items AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.id})
  CALL (m) {
    MATCH (p:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
    USING INDEX SEEK p:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
    WHERE p.valid_from <= m.valid_from AND p.epoch <= m.epoch AND p.place >= 0
      AND p.retired_epoch = 9223372036854775807
      AND CASE WHEN p.valid_from < m.valid_from OR p.epoch < m.epoch THEN true ELSE p.place < m.place END
    RETURN p
    ORDER BY p.workspace DESC, p.scope DESC, p.kind DESC, p.key DESC, p.valid_from DESC, p.epoch DESC, p.place DESC
    LIMIT 1
  }
  CREATE (m)-[:SUPERSEDES {epoch: m.epoch, named: false}]->(p)
}
CALL () {
  UNWIND $batch.items AS row
  MATCH (m:WorkItem {workspace: $workspace, id: row.id})
  CALL (m) {
    MATCH (s:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
    USING INDEX SEEK s:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
    WHERE s.valid_from > m.valid_from AND s.epoch <= m.epoch AND s.place >= 0
      AND s.retired_epoch = 9223372036854775807
    RETURN s
    ORDER BY s.workspace, s.scope, s.kind, s.key, s.valid_from, s.epoch, s.place
    LIMIT 1
  }
  WITH m, s
  WHERE s.epoch < m.epoch
  CREATE (s)-[:SUPERSEDES {epoch: m.epoch, named: false}]->(m)
}
