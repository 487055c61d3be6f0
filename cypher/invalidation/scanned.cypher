// For each target, the later items it was scanned against by this prompt and model.
// Parameters: $workspace, $ids, $prompt, $model.
UNWIND $ids AS id
MATCH (m:WorkItem {workspace: $workspace, id: id})<-[:SCAN_OF]-(s:Scan {prompt: $prompt, model: $model})
UNWIND s.laters AS later
WITH id, collect(later) AS laters
RETURN collect([id, laters]) AS scanned
