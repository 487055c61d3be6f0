// How far a workspace is, and the digest of its log at an epoch or, when it is not so far, at its last.
// Parameters: $workspace, $epoch.
// Returns no row when there is no such workspace.
MATCH (w:Workspace {id: $workspace})
OPTIONAL MATCH (e:Epoch {workspace: $workspace, number: CASE WHEN w.epoch < $epoch THEN w.epoch ELSE $epoch END})
RETURN w.owner AS owner, w.digest AS digest, w.epoch AS epoch, coalesce(e.number, 0) AS number, e.digest AS reached
