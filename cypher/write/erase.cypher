// Erases items and all that is derived from them: words, receipts' text that no other item is bound to, quotes and
// rationales of verdicts they take part in, and memories grounded in them. Ids, digests and the order stay.
// Parameters: $workspace, $epoch, $author, $ids (erased items and all that derives from them), $reason.
CALL () {
  UNWIND $ids AS id
  MATCH (m:WorkItem {workspace: $workspace, id: id})
  SET m.erased_epoch = $epoch, m.erased_by = $author, m.erased_reason = $reason
  REMOVE m.content
}
CALL () {
  UNWIND $ids AS id
  MATCH (:WorkItem {workspace: $workspace, id: id})-[:BOUND_TO]->(r:Receipt)
  WITH DISTINCT r
  WHERE NOT EXISTS {
    MATCH (r)<-[:BOUND_TO]-(other:WorkItem)
    WHERE other.erased_epoch IS NULL
  }
  SET r.erased_epoch = $epoch
  REMOVE r.text
}
CALL () {
  UNWIND $ids AS id
  MATCH (:WorkItem {workspace: $workspace, id: id})-[v:PROPOSED|INVALIDATES|CLEARED|UNVERIFIED|RESTORES]-(:WorkItem)
  REMOVE v.quote, v.rationale
}
CALL () {
  UNWIND $ids AS id
  MATCH (:WorkItem {workspace: $workspace, id: id})<-[:GROUNDED_IN]-(x:Experience)
  SET x.erased_epoch = $epoch
  REMOVE x.content
}
