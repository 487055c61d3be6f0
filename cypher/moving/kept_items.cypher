// What verification read in some items and scanned them against, by the item's id: beside the log, and no part of it.
// Parameters: $workspace, $after (an id; '' at first), $latest (the last epoch that travels), $limit.
MATCH (m:WorkItem {workspace: $workspace})
WHERE m.id > $after AND m.epoch <= $latest AND EXISTS { (m)<-[:READING_OF|SCAN_OF]-() }
WITH m
ORDER BY m.workspace, m.id
LIMIT $limit
RETURN m.id AS item,
  COLLECT {
    MATCH (m)<-[:READING_OF]-(r:Reading)
    RETURN {
      reading: properties(r),
      topics: COLLECT {
        MATCH (r)-[how:RELIES_ON|CHANGES]->(p:Premise)
        WITH how, p, COLLECT { MATCH (p)-[:ABOUT]->(t:Topic) RETURN t.id ORDER BY t.id } AS words
        RETURN {type: type(how), aspect: p.aspect, says: p.says, words: words}
        ORDER BY type(how), p.aspect, p.says
      }
    }
    ORDER BY r.prompt, r.model
  } AS readings,
  COLLECT { MATCH (m)<-[:SCAN_OF]-(s:Scan) RETURN properties(s) ORDER BY s.recorded_at, s.prompt, s.model, s.laters } AS scans
ORDER BY item
