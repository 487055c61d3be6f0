// What a checkpoint held.
// Parameters: $workspace, $checkpoint.
MATCH (c:Checkpoint {workspace: $workspace, id: $checkpoint})
RETURN c.item_ids AS ids
