// How an endpoint takes requests, as far as it was found out.
// Parameters: $workspace, $endpoint.
MATCH (d:Endpoint {workspace: $workspace, endpoint: $endpoint})
RETURN d.model AS model, d.form AS form, d.limit AS limit, d.temperature AS temperature
