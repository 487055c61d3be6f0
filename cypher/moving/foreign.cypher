// How much of a database is not tracegraph's, by label: others may share it, and their nodes do not travel with a history.
// Parameters: none.
MATCH (n)
WITH labels(n) AS labels, count(*) AS nodes
WHERE none(label IN labels WHERE label IN [
  'BatchJob', 'Checkpoint', 'Claim', 'Dependency', 'Endpoint', 'Epoch', 'Erasure', 'Experience', 'Identity', 'Policy',
  'Premise', 'Principal', 'Reading', 'Receipt', 'ReturnCycle', 'ReturnView', 'Revocation', 'Role', 'Scan', 'Scope',
  'Sweep', 'Topic', 'TracegraphSchema', 'WorkItem', 'Workspace'
])
RETURN labels, nodes
ORDER BY nodes DESC
