// Pairs whose later item changes what their earlier one relies on: the same aspect (other than 'other') and a word in
// common, or two words in common whatever the aspect.
// Parameters: $workspace, $ids (one item of each pair), $prompt, $model.
// Returns [later, earlier].
UNWIND $ids AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})<-[:READING_OF]-(r:Reading {prompt: $prompt, model: $model})
CALL (m, r) {
  MATCH (r)-[:CHANGES]->(c:Premise)-[:ABOUT]->(t:Topic)<-[:ABOUT]-(p:Premise)<-[:RELIES_ON]-(other:Reading)
  WHERE other.prompt = $prompt AND other.model = $model AND other <> r
  WITH c, p, other, count(t) AS words
  WHERE words > 1 OR c.aspect = p.aspect AND c.aspect <> 'other'
  MATCH (other)-[:READING_OF]->(e:WorkItem)
  RETURN DISTINCT m.id AS later, e.id AS earlier
  UNION
  MATCH (r)-[:RELIES_ON]->(p:Premise)-[:ABOUT]->(t:Topic)<-[:ABOUT]-(c:Premise)<-[:CHANGES]-(other:Reading)
  WHERE other.prompt = $prompt AND other.model = $model AND other <> r
  WITH c, p, other, count(t) AS words
  WHERE words > 1 OR c.aspect = p.aspect AND c.aspect <> 'other'
  MATCH (other)-[:READING_OF]->(l:WorkItem)
  RETURN DISTINCT l.id AS later, m.id AS earlier
}
WITH collect(DISTINCT [later, earlier]) AS pairs
UNWIND range(0, size(pairs) - 1, 5000) AS start
RETURN pairs[start..start + 5000] AS pairs
