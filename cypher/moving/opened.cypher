// Notes who opened views, and when; what is noted already stays as it is.
// Parameters: $workspace, $opened (maps: jti, principal, at).
UNWIND $opened AS row
MATCH (v:ReturnView {workspace: $workspace, jti: row.jti})
MATCH (p:Principal {workspace: $workspace, id: row.principal})
MERGE (p)-[:OPENED {at: row.at}]->(v)
