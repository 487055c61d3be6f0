// 7 cycle: one whole return
// The departure it came back from, what it kept out and why, the view it got and what that shows.
// Parameters: $workspace, $cycle.
// :param workspace => 'trip'
// :param cycle => 'cycle-1'
MATCH (k:ReturnCycle {workspace: $workspace, id: $cycle})
OPTIONAL MATCH left = (k)-[:RETURNED_FROM]->(:Checkpoint)
RETURN k.decision AS decision,
  k.coverage AS coverage,
  k.critical AS critical,
  k.uncovered AS uncovered,
  k AS return,
  left,
  COLLECT {
    MATCH path = (k)-[:REJECTED]->(:WorkItem)
    RETURN path
  } AS kept_out,
  COLLECT {
    MATCH path = (k)-[:ISSUED]->(:ReturnView)
    RETURN path
    UNION
    MATCH path = (k)-[:ISSUED]->(:ReturnView)-[:ADMITS]->(:WorkItem)
    RETURN path
  } AS shown
