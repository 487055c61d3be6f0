// Lets claimed work go.
// Parameters: $workspace, $keys, $holder.
UNWIND $keys AS key
MATCH (c:Claim {workspace: $workspace, id: key})
WHERE c.holder = $holder
DELETE c
