// Which items were read for their premises by this prompt and model.
// Parameters: $workspace, $ids, $prompt, $model.
UNWIND $ids AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})
WHERE EXISTS { (m)<-[:READING_OF]-(:Reading {prompt: $prompt, model: $model}) }
RETURN collect(id) AS ids
