// Retracts items and receipts, and joins the neighbours that a retracted version leaves in its identity's order.
// Parameters: $workspace, $epoch, $author, $items, $receipts (lists of ids).
// Plan: eager, since versions are retired before their neighbours are looked for.
CALL () {
  UNWIND $receipts AS id
  MATCH (r:Receipt {workspace: $workspace, id: id})
  SET r.retired_epoch = $epoch, r.retired_by = $author
}
CALL () {
  UNWIND $items AS id
  MATCH (m:WorkItem {workspace: $workspace, id: id})
  SET m.retired_epoch = $epoch, m.retired_by = $author
}
CALL () {
  UNWIND $items AS id
  MATCH (m:WorkItem {workspace: $workspace, id: id})
  CALL (m) {
    MATCH (p:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
    USING INDEX SEEK p:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
    WHERE p.valid_from <= m.valid_from AND p.epoch >= 0 AND p.place >= 0
      AND p.retired_epoch = 9223372036854775807
      AND (p.valid_from < m.valid_from OR p.epoch < m.epoch OR p.epoch = m.epoch AND p.place < m.place)
    RETURN p
    ORDER BY p.workspace DESC, p.scope DESC, p.kind DESC, p.key DESC, p.valid_from DESC, p.epoch DESC, p.place DESC
    LIMIT 1
  }
  CALL (m) {
    MATCH (s:WorkItem {workspace: m.workspace, scope: m.scope, kind: m.kind, key: m.key})
    USING INDEX SEEK s:WorkItem(workspace, scope, kind, key, valid_from, epoch, place)
    WHERE s.valid_from >= m.valid_from AND s.epoch >= 0 AND s.place >= 0
      AND s.retired_epoch = 9223372036854775807
      AND (s.valid_from > m.valid_from OR s.epoch > m.epoch OR s.epoch = m.epoch AND s.place > m.place)
    RETURN s
    ORDER BY s.workspace, s.scope, s.kind, s.key, s.valid_from, s.epoch, s.place
    LIMIT 1
  }
  WITH DISTINCT p, s
  WHERE NOT EXISTS { MATCH (s)-[:SUPERSEDES {named: false}]->(p) }
  CREATE (s)-[:SUPERSEDES {epoch: $epoch, named: false}]->(p)
}
