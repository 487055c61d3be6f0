// 3 chain: what invalidated an item, with the quotes
// What superseded, revoked or invalidated it or a premise it rests on, up to four premises away; what answered that, and the
// receipts behind it. Nothing that was withdrawn or retracted.
// Parameters: $workspace, $item.
// :param workspace => 'trip'
// :param item => 'p0'
MATCH (m:WorkItem {workspace: $workspace, id: $item})
CALL (m) {
  MATCH path = (m)-[:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->{0,4}(:WorkItem)
    <-[link:SUPERSEDES|REVOKES|INVALIDATES|RESTORES]-(by)
  WHERE by.retired_epoch = 9223372036854775807 AND coalesce(link.retired_epoch, by.retired_epoch) = by.retired_epoch
  RETURN path
  UNION
  MATCH path = (m)-[:DEPENDS_ON|DERIVED_FROM|FRONTIER_OF]->{0,4}(:WorkItem)
    <-[link:INVALIDATES]-(by:WorkItem)-[:SUPERSEDES|BOUND_TO]->()
  WHERE by.retired_epoch = 9223372036854775807 AND link.retired_epoch = 9223372036854775807
  RETURN path
  UNION
  MATCH path = (m)-[:BOUND_TO]->(:Receipt)<-[:REVOKES]-(by:Revocation)
  WHERE by.retired_epoch = 9223372036854775807
  RETURN path
}
RETURN [link IN relationships(path) WHERE link.quote IS NOT NULL | link.quote] AS quotes,
  path
ORDER BY length(path)
LIMIT 100
