// For each earlier item, the later ones that need no judgment: answered for this task or every task (by this prompt and
// model, or by a hand), or related to it by what was recorded.
// Parameters: $workspace, $ids (earlier items), $task, $prompt (of the question), $prompts (of the questions whose answers
// answer it too), $model, $transient (causes of answers that judged nothing).
// Withdrawn answers count as given: nobody asks a model again for what a person took back.
UNWIND $ids AS id
MATCH (e:WorkItem {workspace: $workspace, id: id})
WITH e, COLLECT {
    MATCH (e)<-[v:INVALIDATES|CLEARED|RESTORES|UNVERIFIED]-(l:WorkItem)
    WHERE (v.task IS NULL OR v.task = $task OR v.task = e.task OR v.task = l.task)
      AND CASE type(v)
        WHEN 'UNVERIFIED' THEN v.model = $model AND v.prompt = $prompt
        ELSE v.model IS NULL OR v.model = $model AND v.prompt IN $prompts
      END
      AND NOT coalesce(v.cause IN $transient, false)
    RETURN DISTINCT l.id
  } + COLLECT {
    MATCH (e)-[:DEPENDS_ON|DERIVED_FROM|SUPERSEDES]-(l:WorkItem)
    RETURN DISTINCT l.id
  } AS laters
WHERE size(laters) > 0
RETURN collect([e.id, laters]) AS settled
