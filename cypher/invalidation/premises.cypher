// What was read in an item: what it silently relies on and what it changes, for `why`.
// Parameters: $workspace, $id.
MATCH (:WorkItem {workspace: $workspace, id: $id})<-[:READING_OF]-(r:Reading)
RETURN r.model AS model, r.prompt AS prompt, r.cause AS cause, r.tokens_in + r.tokens_out AS tokens,
  COLLECT { MATCH (r)-[:RELIES_ON]->(p:Premise) RETURN p {.aspect, .says, words: COLLECT { MATCH (p)-[:ABOUT]->(t) RETURN t.id ORDER BY t.id }} } AS relies_on,
  COLLECT { MATCH (r)-[:CHANGES]->(p:Premise) RETURN p {.aspect, .says, words: COLLECT { MATCH (p)-[:ABOUT]->(t) RETURN t.id ORDER BY t.id }} } AS changes
ORDER BY r.recorded_at DESC
