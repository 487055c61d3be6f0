// Keeps what was read in items and what they were scanned against; what is kept already stays, and nothing is kept of the
// words of an item that was erased.
// Parameters: $workspace, $items (maps: item, readings (maps: reading (properties), topics (maps: type (RELIES_ON or
// CHANGES), aspect, says, words)), scans (maps of properties)).
UNWIND $items AS row
MATCH (m:WorkItem {workspace: $workspace, id: row.item})
CALL (m, row) {
  UNWIND row.scans AS one
  WITH m, one
  WHERE NOT EXISTS {
    MATCH (m)<-[:SCAN_OF]-(s:Scan {prompt: one.prompt, model: one.model})
    WHERE s.recorded_at = one.recorded_at AND s.laters = one.laters
  }
  CREATE (s:Scan)-[:SCAN_OF]->(m)
  SET s = one, s.workspace = $workspace
}
CALL (m, row) {
  UNWIND row.readings AS one
  WITH m, one
  WHERE m.erased_epoch IS NULL
    AND NOT EXISTS { (m)<-[:READING_OF]-(:Reading {prompt: one.reading.prompt, model: one.reading.model}) }
  CREATE (r:Reading)-[:READING_OF]->(m)
  SET r = one.reading, r.workspace = $workspace
  WITH r, one
  UNWIND one.topics AS topic
  CREATE (p:Premise {workspace: $workspace, aspect: topic.aspect, says: topic.says})
  CREATE (r)-[:$(topic.type)]->(p)
  WITH p, topic
  UNWIND topic.words AS word
  MERGE (t:Topic {workspace: $workspace, id: word})
  CREATE (p)-[:ABOUT]->(t)
}
