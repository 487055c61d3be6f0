// Revokes or resolves items and receipts.
// Parameters: $workspace, $epoch, $recorded_at, $author, $revocations (maps: id, target, code, reason, effective_from, digest).
UNWIND $revocations AS row
CREATE (v:Revocation {
  workspace: $workspace, id: row.id, code: row.code, reason: row.reason, effective_from: row.effective_from,
  epoch: $epoch, retired_epoch: 9223372036854775807, recorded_at: $recorded_at, author: $author, digest: row.digest
})
WITH v, row
CALL (v, row) {
  MATCH (m:WorkItem {workspace: $workspace, id: row.target})
  CREATE (v)-[:REVOKES]->(m)
  UNION
  MATCH (r:Receipt {workspace: $workspace, id: row.target})
  WHERE NOT EXISTS { MATCH (:WorkItem {workspace: $workspace, id: row.target}) }
  CREATE (v)-[:REVOKES]->(r)
}
