// Revisions of the policy with everything their digests cover.
// Parameters: $workspace, $ids (revisions, as text), $latest (unused: a revision is never undone).
UNWIND $ids AS id
MATCH (y:Policy {workspace: $workspace, revision: toInteger(id)})
RETURN collect({id: id, stored: properties(y)}) AS found
