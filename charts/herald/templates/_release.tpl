{{/* Whether finalizers are taken off before an uninstall: unless the values say otherwise, also those of a chart that did not have it. */}}
{{- define "herald.release" -}}
{{- if dig "enabled" true (default dict .Values.release) -}}true{{- end -}}
{{- end }}

{{/* Metadata of an object that is there for an uninstall alone. Takes a dict with root, name, weight, and everywhere for what is in no
namespace. Rights come before the Job, so that nobody has them while Herald is installed. */}}
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
