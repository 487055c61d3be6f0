// 4 exposure: views that showed an item, departures that took it along
// The returns that issued it and who opened it. Beside them each departure that took the item along in its checkpoint, with
// what its returns did with it and the views they got instead.
// Parameters: $workspace, $item.
// :param workspace => 'trip'
// :param item => 'p0'
MATCH (m:WorkItem {workspace: $workspace, id: $item})
WITH m, COLLECT { MATCH (view:ReturnView)-[:ADMITS]->(m) RETURN view.jti } AS views
RETURN CASE WHEN size(views) = 0 THEN 'no view showed it' ELSE 'it was shown' END AS answer,
  views,
  m AS item,
  COLLECT {
    MATCH path = (:ReturnCycle)-[:ISSUED]->(:ReturnView)-[:ADMITS]->(m)
    RETURN path
  } AS shown,
  COLLECT {
    MATCH path = (:Principal)-[:OPENED]->(:ReturnView)-[:ADMITS]->(m)
    RETURN path
  } AS opened,
  COLLECT {
    MATCH (c:Checkpoint {workspace: $workspace})
    WHERE c.id >= '' AND m.id IN c.item_ids
    CALL (c, m) {
      MATCH path = (c)<-[:RETURNED_FROM]-(:ReturnCycle)-[:REJECTED]->(m)
      RETURN path
      UNION
      MATCH path = (c)<-[:RETURNED_FROM]-(:ReturnCycle)-[:ISSUED]->(:ReturnView)
      RETURN path
      UNION
      MATCH path = (c)
      RETURN path
    }
    RETURN path
  } AS taken_along
