// A principal's private memories, each with what it is grounded in.
// Parameters: $workspace, $principal.
MATCH (x:Experience {workspace: $workspace, owner: $principal})
USING INDEX SEEK x:Experience(workspace, owner)
WHERE x.erased_epoch IS NULL
RETURN collect(x {
  .id, .content, .epoch, .recorded_at,
  grounded_in: COLLECT { MATCH (x)-[:GROUNDED_IN]->(m:WorkItem) RETURN m.id }
}) AS experiences
