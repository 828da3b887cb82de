{{/* Whether finalizers are removed before an uninstall. They are unless the values disable it, even with the values of an older chart. */}}
{{- define "herald.release" -}}
{{- if dig "enabled" true (default dict .Values.release) -}}true{{- end -}}
{{- end }}

{{/* Metadata of an object that exists only during an uninstall. Takes a dict with root, name, weight, and everywhere for cluster-scoped objects.
The rights are created just before the Job, so that nothing has them while Herald is installed. */}}
{{- define "herald.release.metadata" -}}
name: {{ include "herald.fullname" .root }}-release
{{- if not .everywhere }}
namespace: {{ .root.Release.Namespace }}
{{- end }}
labels:
  {{- include "herald.componentLabels" (dict "root" .root "component" "release") | nindent 2 }}
annotations:
  helm.sh/hook: pre-delete
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
{{- end }}
