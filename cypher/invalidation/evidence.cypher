// What a model may read of items: their words, their times, and the text of their receipts that are in force.
// Parameters: $workspace, $ids, $now (microseconds). Erased items are left out.
UNWIND $ids AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})
WHERE m.content IS NOT NULL
RETURN collect(m {
  .id, .key, .kind, .content, .digest, .task, .valid_from, .valid_to, .recorded_at,
  receipts: COLLECT {
    MATCH (m)-[:BOUND_TO]->(r:Receipt)
    WHERE r.text IS NOT NULL AND r.retired_epoch = 9223372036854775807
      AND NOT EXISTS {
        MATCH (r)<-[:REVOKES]-(v:Revocation)
        WHERE v.retired_epoch = 9223372036854775807 AND v.effective_from <= $now
      }
    RETURN r.text
    ORDER BY r.id
  }
}) AS items
