// How many records each of the next epochs holds, to lay out pages of bounded size.
// Parameters: $workspace, $after, $until (epochs; the first is excluded).
MATCH (e:Epoch {workspace: $workspace})
WHERE $after < e.number <= $until
WITH e
ORDER BY e.workspace, e.number
LIMIT 500
RETURN collect([e.number, size(coalesce(e.records, []))]) AS sizes
