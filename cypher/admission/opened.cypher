// Notes that a principal opened a view: who was shown what, and when; once, also when it is sent again.
// Parameters: $workspace, $jti, $principal, $at (microseconds).
// Plan: cartesian product of two single rows, the view and the principal.
MATCH (v:ReturnView {workspace: $workspace, jti: $jti})
MATCH (p:Principal {workspace: $workspace, id: $principal})
MERGE (p)-[:OPENED {at: $at}]->(v)
