// Keeps how an endpoint takes requests.
// Parameters: $workspace, $endpoint, $model, $form, $limit, $temperature.
MERGE (d:Endpoint {workspace: $workspace, endpoint: $endpoint, model: $model})
SET d.form = $form, d.limit = $limit, d.temperature = $temperature
