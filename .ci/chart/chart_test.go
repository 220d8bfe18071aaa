package chart

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// least is what everybody has to say.
const least = `
image: {repository: registry.example.com/wasmgate}
publicURL: https://gw.example.com
config:
  auth: {issuers: {corp: {issuer: "https://login.example.com"}}}
ingress: {enabled: true, from: [10.0.0.0/8]}
`

// render returns the objects of the chart, each as YAML.
func render(t *testing.T, values string) ([]string, error) {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, "deploy/helm/wasmgate"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	all, err := util.ToRenderValues(c, v, common.ReleaseOptions{Name: "gw", Namespace: "agents"}, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var objects []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, object := range strings.Split("\n"+files[name], "\n---\n") {
			if strings.TrimSpace(object) != "" {
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}

// decode returns a strictly decoded object, or nil for a kind whose types are not linked.
func decode(t *testing.T, object string) any {
	t.Helper()
	var kind struct{ Kind string }
	if err := yaml.Unmarshal([]byte(object), &kind); err != nil {
		t.Fatalf("%v in\n%s", err, object)
	}
	into, known := map[string]any{
		"ConfigMap": new(corev1.ConfigMap), "Service": new(corev1.Service), "StatefulSet": new(appsv1.StatefulSet),
		"Ingress": new(networkingv1.Ingress), "NetworkPolicy": new(networkingv1.NetworkPolicy),
		"PodDisruptionBudget": new(policyv1.PodDisruptionBudget), "HorizontalPodAutoscaler": new(autoscalingv2.HorizontalPodAutoscaler),
		"ServiceMonitor": new(map[string]any),
	}[kind.Kind]
	if !known {
		t.Fatalf("an object of kind %q", kind.Kind)
	}
	if err := yaml.UnmarshalStrict([]byte(object), into); err != nil {
		t.Fatalf("%s: %v in\n%s", kind.Kind, err, object)
	}
	return into
}

// program builds wasmgate once.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wasmgate")
	c := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/wasmgate")
	c.Dir = root
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// accepted has wasmgate read the configuration in a ConfigMap as it would be mounted.
func accepted(t *testing.T, wasmgate string, config *corev1.ConfigMap, set *appsv1.StatefulSet) {
	t.Helper()
	dir, data := t.TempDir(), t.TempDir()
	for _, v := range set.Spec.Template.Spec.Volumes {
		if v.Secret != nil { // its keys are the operator's
			folder := filepath.Join(data, "secrets", v.Secret.SecretName)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"tls.crt", "tls.key"} {
				if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if v.ConfigMap == nil {
			continue
		}
		for _, item := range v.ConfigMap.Items {
			text, ok := config.Data[item.Key]
			if !ok {
				t.Fatalf("the ConfigMap has no %s", item.Key)
			}
			text = strings.NewReplacer("/var/lib/wasmgate", data, "/run/secrets", filepath.Join(data, "secrets")).Replace(text)
			path := filepath.Join(dir, item.Path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := exec.CommandContext(t.Context(), wasmgate, "policy", "check", "--config", filepath.Join(dir, "wasmgate.yaml"))
	c.Env = append(os.Environ(), "HOME="+data, "API_TOKEN=x", "POD=gw-0", "POD_IP=10.0.0.9",
		"STORE_URL=postgres://wasmgate@db.example.com/wasmgate?sslmode=verify-full", "STORE_SECRET="+strings.Repeat("x", 32))
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("wasmgate does not take the configuration: %v\n%s\n%s", err, out, config.Data["wasmgate.yaml"])
	}
}

func TestChart(t *testing.T) {
	wasmgate := program(t)
	for name, tt := range map[string]struct {
		more    string
		objects int
		holds   string // in one of the objects
	}{
		"least":             {"", 6, "image: \"registry.example.com/wasmgate:v0.1.0\""},
		"a tag":             {"image: {repository: r, tag: v9}", 6, "image: \"r:v9\""},
		"servers":           {"config: {auth: {issuers: {corp: {issuer: \"https://login.example.com\"}}}, servers: {tickets: {url: \"https://t.example.com/mcp\", headers: {Authorization: \"Bearer ${API_TOKEN}\"}}}}\nenvFrom: [{secretRef: {name: tokens}}]", 6, "name: tokens"},
		"policies, grants":  {"policies: {a.rego: \"package wasmgate\\n\\nallow contains \\\"x\\\" if input.tool.name == \\\"t__x\\\"\\n\"}\ngrants: [{to: [\"role:dev\"], tools: [\"t__*\"]}]", 6, "path: policies/a.rego"},
		"own certificates":  {"ingress: {enabled: false}\nconfig: {auth: {issuers: {corp: {issuer: \"https://login.example.com\"}}}, tls: {terminated_by: [10.1.2.3]}}", 5, "terminated_by"},
		"cert-manager":      {"ingress: {enabled: true, from: [10.0.0.0/8], className: nginx, tlsSecret: gw-tls, annotations: {cert-manager.io/cluster-issuer: le}}", 6, "secretName: gw-tls"},
		"monitoring":        {"serviceMonitor: {enabled: true, labels: {release: prom}}\nnetworkPolicy: {enabled: true, monitoring: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}", 7, "release: prom"},
		"no network policy": {"networkPolicy: {enabled: false}", 5, "kind: StatefulSet"},
		"storage":           {"persistence: {size: 50Gi, storageClass: fast}", 6, "storageClassName: fast"},
		"several":           {"replicas: 3\nstore: {secretName: db}", 7, "maxUnavailable: 1"},
		"scaled":            {"autoscaling: {enabled: true, min: 2, max: 5, cpu: 60}\nstore: {secretName: db}", 8, "averageUtilization: 60"},
		"one with a store":  {"store: {secretName: db}", 6, "secretKeyRef: {name: db, key: url}"},
		"files of secrets":  {"secrets: [tickets]", 6, "mountPath: /run/secrets/tickets"},
		"affinity":          {"service: {sessionAffinity: ClientIP}", 6, "sessionAffinity: ClientIP"},
		"placement":         {"nodeSelector: {disk: ssd}\ntolerations: [{key: a, operator: Exists}]\npodAnnotations: {a: b}\nimagePullSecrets: [{name: pull}]", 6, "disk: ssd"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := valid(t, wasmgate, merge(t, least, tt.more))
			if all := strings.Join(objects, "\n"); len(objects) != tt.objects || !strings.Contains(all, tt.holds) {
				t.Errorf("%d objects, want %d with %q:\n%s", len(objects), tt.objects, tt.holds, all)
			}
		})
	}
}

// valid returns the objects of a chart that Kubernetes decodes and whose configuration wasmgate takes.
func valid(t *testing.T, wasmgate, values string) []string {
	t.Helper()
	objects, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	var config *corev1.ConfigMap
	var set *appsv1.StatefulSet
	for _, object := range objects {
		switch o := decode(t, object).(type) {
		case *corev1.ConfigMap:
			config = o
		case *appsv1.StatefulSet:
			set = o
		}
	}
	accepted(t, wasmgate, config, set)
	return objects
}

// The files of values that operators begin with are valid.
func TestExamples(t *testing.T) {
	wasmgate := program(t)
	files, err := filepath.Glob(filepath.Join(root, "deploy/helm/examples/*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			values, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			valid(t, wasmgate, string(values))
		})
	}
}

var update = flag.Bool("update", false, "write deploy/kubernetes/wasmgate.yaml")

// The plain manifests are those of the chart.
func TestManifests(t *testing.T) {
	objects, err := render(t, least)
	if err != nil {
		t.Fatal(err)
	}
	for i, object := range objects {
		objects[i] = strings.TrimSpace(object) + "\n"
	}
	got := "# Rendered from deploy/helm/wasmgate by \"go test -C .ci/chart -run Manifests -update\"; docs/how-to/kubernetes.md says what to change.\n---\n" + strings.Join(objects, "---\n")
	path := filepath.Join(root, "deploy/kubernetes/wasmgate.yaml")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the chart renders (%v): run this test with -update", path, err)
	}
}

// merge puts the keys of more in the place of those of base.
func merge(t *testing.T, base, more string) string {
	t.Helper()
	var all map[string]any
	for _, text := range []string{base, more} {
		if err := yaml.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err)
		}
	}
	b, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Wrong values are errors that name the path.
func TestWrongValues(t *testing.T) {
	for more, want := range map[string]string{
		"publicURL: http://gw.example.com":               "publicURL",
		"publicURL: https://gw.example.com/path":         "publicURL",
		"config: {}":                                     "auth",
		"image: {repository: \"\"}":                      "repository",
		"image: {repository: r, tagg: v1}":               "tagg",
		"ingress: {enabled: true, from: []}":             "from",
		"ingress: {enabled: true, from: [\"10.0.0.1\"]}": "from",
		"persistence: {size: big}":                       "size",
		"service: {port: 0}":                             "port",
		"policies: {a.txt: x}":                           "a.txt",
		"replicas: 0":                                    "replicas",
		"replicas: 3":                                    "store",
		"autoscaling: {enabled: true}":                   "store",
		"autoscaling: {min: 1}":                          "min",
		"secrets: [A/B]":                                 "secrets",
		"service: {sessionAffinity: Cookie}":             "sessionAffinity",
		"serviceMonitor: {interval: often}":              "interval",
	} {
		if _, err := render(t, merge(t, least, more)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", more, err)
		}
	}
}
