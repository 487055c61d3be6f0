// Keeps which later items a target was scanned against, and what it cost.
// Parameters: $workspace, $prompt, $model, $scans (maps: target, laters, cause, calls, retries, tokens_in, tokens_out,
// milliseconds).
// Beside the log: it only says where was looked, and decides nothing.
UNWIND $scans AS row
MATCH (m:WorkItem {workspace: $workspace, id: row.target})
CREATE (s:Scan {
  workspace: $workspace, prompt: $prompt, model: $model, laters: row.laters, cause: row.cause, calls: row.calls,
  retries: row.retries, tokens_in: row.tokens_in, tokens_out: row.tokens_out, milliseconds: row.milliseconds,
  recorded_at: timestamp() * 1000
})-[:SCAN_OF]->(m)
