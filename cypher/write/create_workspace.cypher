// Opens a workspace, or creates it with its owner and the first revision of its policy at epoch 0.
// Parameters: $workspace, $owner (null only opens), $policy (a map of every policy field), $recorded_at (microseconds),
// $digest (what the chain begins with).
// Returns one row, or none when it does not exist and no owner is given.
CALL () {
  WITH $owner AS owner WHERE owner IS NOT NULL
  MERGE (w:Workspace {id: $workspace})
  ON CREATE SET w.workspace = $workspace, w.owner = owner, w.epoch = 0, w.recorded_at = $recorded_at,
    w.digest = $digest, w.lock = true, w.new = true
  WITH w WHERE w.new
  REMOVE w.new
  MERGE (p:Principal {workspace: $workspace, id: w.owner})
  ON CREATE SET p.epoch = 0
  CREATE (y:Policy {workspace: $workspace, revision: 1, epoch: 0})
  SET y += $policy
}
MATCH (w:Workspace {id: $workspace})
OPTIONAL MATCH (first:Policy {workspace: $workspace, revision: 1})
RETURN w.owner AS owner, properties(first) AS policy
