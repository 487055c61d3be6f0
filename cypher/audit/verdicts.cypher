// Everything that a model or an author invalidated, with the quotes, newest first; whether it still counts, or was
// withdrawn, answered by a restoration, or lost the item it came from.
// Parameters: $workspace; $model, $author (null for all).
// :param workspace => 'trip'
// :param model => null
// :param author => null
MATCH (later:WorkItem {workspace: $workspace})-[v:INVALIDATES]->(earlier:WorkItem)
USING INDEX SEEK later:WorkItem(workspace, epoch)
WHERE later.epoch >= 0 AND ($model IS NULL OR v.model = $model) AND ($author IS NULL OR v.author = $author)
RETURN v.id AS verdict,
  earlier.id AS earlier,
  earlier.content AS earlier_content,
  later.id AS later,
  later.content AS later_content,
  v.quote AS quote,
  v.rationale AS rationale,
  v.confidence AS confidence,
  v.task AS task,
  v.model AS model,
  v.prompt AS prompt,
  v.tokens AS tokens,
  v.author AS author,
  v.epoch AS epoch,
  datetime({epochMillis: 0})
    + duration({seconds: v.recorded_at / 1000000, microseconds: v.recorded_at % 1000000}) AS recorded_at,
  datetime({epochMillis: 0})
    + duration({seconds: v.effective_from / 1000000, microseconds: v.effective_from % 1000000}) AS effective_from,
  CASE WHEN v.retired_epoch < 9223372036854775807 THEN v.retired_epoch END AS withdrawn_epoch,
  CASE WHEN later.retired_epoch < 9223372036854775807 THEN later.retired_epoch END AS later_retracted_epoch,
  COLLECT {
    MATCH (earlier)<-[answer:RESTORES]-(restorer:WorkItem)
    WHERE (answer.task IS NULL OR answer.task = v.task) AND answer.epoch > v.epoch
      AND answer.retired_epoch = 9223372036854775807 AND restorer.retired_epoch = 9223372036854775807
    RETURN restorer.id
  } AS restored_by
ORDER BY v.epoch DESC, earlier, later
