// Sets the next revision of the workspace's policy.
// Parameters: $workspace, $epoch, $author, $policies (maps of every policy field, with revision and digest).
UNWIND $policies AS row
CREATE (y:Policy)
SET y = row, y.workspace = $workspace, y.epoch = $epoch, y.author = $author
