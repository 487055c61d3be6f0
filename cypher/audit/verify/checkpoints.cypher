// Departures with everything their digests cover.
// Parameters: $workspace, $ids, $latest (unused: a departure is never undone).
UNWIND $ids AS id
MATCH (c:Checkpoint {workspace: $workspace, id: id})
RETURN collect({id: c.id, stored: properties(c)}) AS found
