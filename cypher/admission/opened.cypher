// Notes that a principal opened a view: who was shown what, and when.
// Parameters: $workspace, $jti, $principal, $at (microseconds).
// Plan: cartesian product of two single rows, the view and the principal.
MATCH (v:ReturnView {workspace: $workspace, jti: $jti})
MATCH (p:Principal {workspace: $workspace, id: $principal})
CREATE (p)-[:OPENED {at: $at}]->(v)
