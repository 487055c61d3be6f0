// Which of these return cycles are there.
// Parameters: $workspace, $ids.
UNWIND $ids AS id
MATCH (k:ReturnCycle {workspace: $workspace, id: id})
RETURN collect(k.id) AS ids
