{{/* A Deployment for a trial, with its Service. Takes a dict with root, component, port, args, probe, volumes (of Kubernetes),
mounts, and open if everything in the cluster may connect to it. */}}
{{- define "herald.evaluation" -}}
{{- $name := printf "%s-%s" (include "herald.fullname" .root) .component -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "herald.componentLabels" . | nindent 4 }}
spec:
  replicas: 1
  # Two at once would not know of each other's state.
  strategy: {type: Recreate}
  selector:
    matchLabels:
      {{- include "herald.selector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "herald.podLabels" . | nindent 8 }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: 10
      securityContext:
        {{- toYaml .root.Values.podSecurityContext | nindent 8 }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
      {{- range . }}
      - name: {{ . }}
      {{- end }}
      {{- end }}
      containers:
      - name: {{ .component }}
        image: {{ include "herald.image" (dict "root" .root "ending" (printf "-%s" .component)) }}
        imagePullPolicy: {{ .root.Values.image.pullPolicy }}
        args:
        {{- toYaml .args | nindent 8 }}
        ports:
        - {name: http, containerPort: {{ .port }}}
        readinessProbe:
          httpGet: {path: {{ .probe }}, port: http}
          periodSeconds: 2
        resources:
          requests: {cpu: 50m, memory: 64Mi}
          limits: {memory: 512Mi}
        securityContext:
          {{- include "herald.container.security" .root | nindent 10 }}
        volumeMounts:
        {{- toYaml .mounts | nindent 8 }}
      volumes:
      {{- toYaml .volumes | nindent 6 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "herald.componentLabels" . | nindent 4 }}
spec:
  selector:
    {{- include "herald.selector" . | nindent 4 }}
  ports:
  - {name: http, port: {{ .port }}, targetPort: http}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "herald.componentLabels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "herald.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
  - ports:
    - {port: http, protocol: TCP}
    {{- if not .open }}
    from:
    - podSelector:
        matchLabels:
          app.kubernetes.io/name: herald
          app.kubernetes.io/instance: {{ .root.Release.Name }}
    {{- end }}
  egress:
  - ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
    - {port: 5353, protocol: UDP}
    - {port: 5353, protocol: TCP}
  - to:
    - podSelector:
        matchLabels:
          app.kubernetes.io/name: herald
          app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end }}
{{- end }}
