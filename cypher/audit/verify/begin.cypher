// Where a walk of the commit log begins and ends: what its first digest covers, how many epochs there are, and what claims
// an epoch that was not given out yet.
// Parameters: $workspace.
MATCH (w:Workspace {id: $workspace})
OPTIONAL MATCH (y:Policy {workspace: $workspace, revision: 1})
CALL () {
  MATCH (e:Epoch {workspace: $workspace})
  WHERE e.number IS NOT NULL
  RETURN count(e) AS epochs, max(e.number) AS highest
}
RETURN w.owner AS owner,
  w.recorded_at AS recorded_at,
  w.digest AS digest,
  properties(y) AS policy,
  epochs,
  highest,
  head(COLLECT {
    MATCH (m:WorkItem {workspace: $workspace})
    WHERE m.epoch > w.epoch
    RETURN m.id
    ORDER BY m.epoch
    LIMIT 1
  }) AS ahead
