{{/* The rights of a process in each namespace that the installation serves; nothing if it serves all, since they are then part of a
ClusterRole. Takes a dict with root, role, process and rules. */}}
{{- define "herald.roles" -}}
{{- range .root.Values.namespaces }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ include "herald.fullname" $.root }}-{{ $.role }}
  namespace: {{ . | quote }}
  labels:
    {{- include "herald.labels" $.root | nindent 4 }}
rules:
{{ $.rules | trim }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ include "herald.fullname" $.root }}-{{ $.role }}
  namespace: {{ . | quote }}
  labels:
    {{- include "herald.labels" $.root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "herald.fullname" $.root }}-{{ $.role }}
subjects:
- kind: ServiceAccount
  name: {{ include "herald.fullname" $.root }}-{{ $.process }}
  namespace: {{ $.root.Release.Namespace }}
{{- end }}
{{- end }}

{{/* Selects the namespaces that the installation serves, in a policy or a webhook; all of them without the value. */}}
{{- define "herald.servedNamespaces" -}}
{{- if .Values.namespaces -}}
{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: {{ .Values.namespaces | toJson }}}]}
{{- else -}}
{}
{{- end -}}
{{- end }}
