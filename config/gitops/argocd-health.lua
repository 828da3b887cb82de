-- Health of Herald's kinds in Argo CD. It goes into the ConfigMap argocd-cm, under
-- resource.customizations.health.social.herald.dev_Post (or _Connection, _Media, _Team, _APIKey):
-- Argo CD knows nothing of conditions by itself.
local health = {status = "Progressing", message = "not looked at yet"}
if obj.status == nil or obj.status.conditions == nil then
  return health
end
local found = {}
for _, condition in ipairs(obj.status.conditions) do
  found[condition.type] = condition
end
local ready = found["Ready"]
if ready == nil or obj.metadata.generation ~= nil and ready.observedGeneration ~= obj.metadata.generation then
  return health
end
health.message = ready.message
if found["Stalled"] ~= nil and found["Stalled"].status == "True" then
  health.status = "Degraded"
elseif ready.status ~= "True" then
  health.status = "Progressing"
elseif ready.reason == "Draft" then
  health.status = "Suspended"
else
  health.status = "Healthy"
end
return health
