// Keeps private memories, each grounded in work items.
// Parameters: $workspace, $epoch, $recorded_at, $experiences (maps: id, owner, content, content_digest, digest, grounded_in).
UNWIND $experiences AS row
CREATE (x:Experience {
  workspace: $workspace, id: row.id, owner: row.owner, content: row.content, content_digest: row.content_digest,
  digest: row.digest, epoch: $epoch, recorded_at: $recorded_at
})
WITH x, row
UNWIND row.grounded_in AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})
CREATE (x)-[:GROUNDED_IN]->(m)
