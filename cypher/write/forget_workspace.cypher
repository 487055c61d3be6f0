// Deletes some of what one workspace holds: what hangs on others first, the workspace's own node last. Run until it
// deletes fewer than the limit. For scratch workspaces of tests and scenario files, never for a team's.
// Parameters: $workspace, $limit.
CALL () {
  MATCH (m:WorkItem {workspace: $workspace})<-[:READING_OF]-(:Reading)-[:RELIES_ON|CHANGES]->(n:Premise)
  WHERE m.id IS NOT NULL
  RETURN DISTINCT n
  UNION ALL
  MATCH (m:WorkItem {workspace: $workspace})<-[:READING_OF]-(n:Reading) WHERE m.id IS NOT NULL RETURN DISTINCT n
  UNION ALL
  MATCH (m:WorkItem {workspace: $workspace})<-[:SCAN_OF]-(n:Scan) WHERE m.id IS NOT NULL RETURN DISTINCT n
  UNION ALL
  MATCH (n:Topic {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Claim {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:BatchJob {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Endpoint {workspace: $workspace}) WHERE n.endpoint IS NOT NULL AND n.model IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Sweep {workspace: $workspace})
  WHERE n.task IS NOT NULL AND n.method IS NOT NULL AND n.epoch IS NOT NULL
  RETURN n
  UNION ALL
  MATCH (n:WorkItem {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Receipt {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Revocation {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Experience {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Identity {workspace: $workspace})
  WHERE n.task IS NOT NULL AND n.scope IS NOT NULL AND n.kind IS NOT NULL AND n.key IS NOT NULL
  RETURN n
  UNION ALL
  MATCH (n:Dependency {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Checkpoint {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:ReturnCycle {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:ReturnView {workspace: $workspace}) WHERE n.jti IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Principal {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Role {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Scope {workspace: $workspace}) WHERE n.id IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Policy {workspace: $workspace}) WHERE n.revision IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Erasure {workspace: $workspace}) WHERE n.target IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Epoch {workspace: $workspace}) WHERE n.number IS NOT NULL RETURN n
  UNION ALL
  MATCH (n:Workspace {id: $workspace}) RETURN n
}
WITH n
LIMIT $limit
DETACH DELETE n
RETURN count(*) AS deleted
