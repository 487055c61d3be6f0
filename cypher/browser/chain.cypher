// 3 chain: what invalidated an item, with the quotes
// What superseded, revoked or invalidated it or a premise it rests on, up to four premises away; what answered that, and the
// receipts behind it.
// Parameters: $workspace, $item.
// :param workspace => 'trip'
// :param item => 'p0'
MATCH (m:WorkItem {workspace: $workspace, id: $item})
CALL (m) {
  MATCH path = (m)-[:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->{0,4}(:WorkItem)<-[:SUPERSEDES|REVOKES|INVALIDATES|RESTORES]-()
  RETURN path
  UNION
  MATCH path = (m)-[:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->{0,4}(:WorkItem)
    <-[:INVALIDATES]-(:WorkItem)-[:SUPERSEDES|BOUND_TO]->()
  RETURN path
  UNION
  MATCH path = (m)-[:BOUND_TO]->(:Receipt)<-[:REVOKES]-(:Revocation)
  RETURN path
}
RETURN [link IN relationships(path) WHERE link.quote IS NOT NULL | link.quote] AS quotes,
  path
ORDER BY length(path)
LIMIT 100
