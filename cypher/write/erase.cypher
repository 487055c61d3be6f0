// Erases an item and all that is derived from it: words, receipts' text that no other item is bound to, quotes and
// rationales of verdicts they take part in, what was read in them, and memories grounded in them. Ids, digests and the order stay, and what an
// earlier erasure took keeps its mark.
// Parameters: $workspace, $epoch, $author, $erasure (a map: target, reason, erased (ids, the target's too), digest).
// Plan: eager, since every word is removed from what was matched before.
CREATE (x:Erasure)
SET x = $erasure, x.workspace = $workspace, x.epoch = $epoch, x.author = $author
WITH x
CALL (x) {
  UNWIND x.erased AS id
  MATCH (m:WorkItem {workspace: $workspace, id: id})
  CREATE (x)-[:ERASES]->(m)
  WITH m
  WHERE m.erased_epoch IS NULL
  SET m.erased_epoch = $epoch
  REMOVE m.content
}
CALL (x) {
  UNWIND x.erased AS id
  MATCH (:WorkItem {workspace: $workspace, id: id})-[:BOUND_TO]->(r:Receipt)
  WITH DISTINCT r
  WHERE r.erased_epoch IS NULL AND NOT EXISTS {
    MATCH (r)<-[:BOUND_TO]-(other:WorkItem)
    WHERE other.erased_epoch IS NULL
  }
  SET r.erased_epoch = $epoch
  REMOVE r.text
}
CALL (x) {
  UNWIND x.erased AS id
  MATCH (:WorkItem {workspace: $workspace, id: id})-[v:PROPOSED|INVALIDATES|CLEARED|UNVERIFIED|RESTORES]-(:WorkItem)
  REMOVE v.quote, v.rationale
}
CALL (x) {
  UNWIND x.erased AS id
  MATCH (:WorkItem {workspace: $workspace, id: id})<-[:GROUNDED_IN]-(memory:Experience)
  WHERE memory.erased_epoch IS NULL
  SET memory.erased_epoch = $epoch
  REMOVE memory.content
}
CALL (x) {
  UNWIND x.erased AS id
  MATCH (:WorkItem {workspace: $workspace, id: id})<-[:READING_OF]-(r:Reading)
  OPTIONAL MATCH (r)-[:RELIES_ON|CHANGES]->(p:Premise)
  OPTIONAL MATCH (p)-[:ABOUT]->(t:Topic)
  WITH collect(DISTINCT r) + collect(DISTINCT p) AS gone, collect(DISTINCT t) AS topics
  FOREACH (one IN gone | DETACH DELETE one)
  WITH topics
  UNWIND topics AS t
  WITH t
  WHERE NOT EXISTS { (t)<-[:ABOUT]-() }
  DELETE t
}
