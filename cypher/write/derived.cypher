// Which items were derived directly from these.
// Parameters: $workspace, $ids.
UNWIND $ids AS id
MATCH (:WorkItem {workspace: $workspace, id: id})<-[:DERIVED_FROM]-(m:WorkItem)
RETURN collect(DISTINCT m.id) AS ids
