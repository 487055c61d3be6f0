// Keeps what was read in items: what they rely on and what they change, by the words that match them.
// Parameters: $workspace, $prompt, $model, $readings (maps: item, cause, calls, retries, tokens_in, tokens_out,
// milliseconds, topics (maps: type (RELIES_ON or CHANGES), aspect, says, words)).
// Beside the log: it only says where to look, and decides nothing.
UNWIND $readings AS row
MATCH (m:WorkItem {workspace: $workspace, id: row.item})
WHERE m.content IS NOT NULL AND NOT EXISTS { (m)<-[:READING_OF]-(:Reading {prompt: $prompt, model: $model}) }
CREATE (r:Reading {
  workspace: $workspace, prompt: $prompt, model: $model, cause: row.cause, calls: row.calls, retries: row.retries,
  tokens_in: row.tokens_in, tokens_out: row.tokens_out, milliseconds: row.milliseconds, recorded_at: timestamp() * 1000
})-[:READING_OF]->(m)
WITH r, row
UNWIND row.topics AS topic
CREATE (p:Premise {workspace: $workspace, aspect: topic.aspect, says: topic.says})
CREATE (r)-[:$(topic.type)]->(p)
WITH p, topic
UNWIND topic.words AS word
MERGE (t:Topic {workspace: $workspace, id: word})
CREATE (p)-[:ABOUT]->(t)
