// What was retracted: an item, or a receipt where no item has the id.
// Parameters: $workspace, $ids, $latest (unused: a retraction is never undone).
UNWIND $ids AS id
OPTIONAL MATCH (m:WorkItem {workspace: $workspace, id: id})
OPTIONAL MATCH (r:Receipt {workspace: $workspace, id: id})
WITH id, coalesce(m, r) AS target
WHERE target IS NOT NULL
RETURN collect({id: id, retired: [[target.retired_epoch, target.retired_by]]}) AS found
