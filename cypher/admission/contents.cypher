// The words and marks of items, in one record.
// Parameters: $workspace, $ids.
UNWIND $ids AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})
RETURN collect(m {
  .id, .key, .kind, .scope, .content, .digest, .content_digest, .length, .valid_from, .valid_to
}) AS items
