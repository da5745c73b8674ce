package kubernetes

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/config/apis/webhookadmission"
	webhookadmissionv1 "k8s.io/apiserver/pkg/admission/plugin/webhook/config/apis/webhookadmission/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write weir.yaml from the chart")

func scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme,
		admissionregistrationv1.AddToScheme, rbacv1.AddToScheme, admissionv1.AddToScheme, apiserverv1.AddToScheme,
		webhookadmissionv1.AddToScheme, webhookadmission.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	s.AddKnownTypeWithName(clientcmdv1.SchemeGroupVersion.WithKind("Config"), &clientcmdv1.Config{})
	return s
}

// decode reads documents into the Kubernetes types; an unknown, duplicate or
// misspelt field is an error.
func decode(t testing.TB, text string) (objects []runtime.Object, err error) {
	t.Helper()
	s := scheme(t)
	d := json.NewSerializerWithOptions(json.DefaultMetaFactory, s, s, json.SerializerOptions{Yaml: true, Strict: true})
	docs := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	defer docs.Close()
	for {
		buf := make([]byte, 1<<20)
		n, err := docs.Read(buf)
		if errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		var any map[string]any
		if err := sigsyaml.Unmarshal(buf[:n], &any); err != nil {
			return nil, err
		}
		if any == nil {
			continue // comments only
		}
		o, _, err := d.Decode(buf[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
}

// render gives the chart's manifests as helm template would.
func render(t testing.TB, values map[string]any) (string, error) {
	t.Helper()
	chart, err := loader.LoadDir("../helm/weir")
	if err != nil {
		t.Fatal(err)
	}
	v, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: "weir", Namespace: "weir", IsInstall: true}, common.DefaultCapabilities)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(chart, v)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if text := strings.TrimSpace(files[name]); text != "" && strings.HasSuffix(name, ".yaml") {
			out.WriteString("---\n" + text + "\n")
		}
	}
	return out.String(), nil
}

func valuesOf(t testing.TB, text string) (v map[string]any) {
	t.Helper()
	if err := sigsyaml.UnmarshalStrict([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// one gives the only object of a type.
func one[T any](t testing.TB, objects []runtime.Object) *T {
	t.Helper()
	var found []*T
	for _, o := range objects {
		if x, ok := any(o).(*T); ok {
			found = append(found, x)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d objects of %T", len(found), *new(T))
	}
	return found[0]
}

const changed = `
image: {repository: registry.example/weir, digest: "sha256:9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab"}
imagePullSecrets: [{name: registry}]
replicas: 5
database: {secret: pg, key: url, port: 6432}
config: {people: "people: []\n", policies: "x-note: \"two: lines\"\npolicies: []\n", access: "issuers: []\ngrants: []\n"}
envSecrets: [weir-endpoints]
packs: [data_rights, /etc/weir/house.yaml]
baseURL: https://weir.example
tls: {secret: gate-tls}
signing: {secret: log-key, keys: [old.key, new.key]}
hook:
  enabled: true
  service: gpu-cluster
  clientNames: [a, b]
  controllers: []
  caBundle: Zm9v
  timeoutSeconds: 5
  namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}]}
networkPolicy:
  clients: [{namespaceSelector: {matchLabels: {team: nlp}}, podSelector: {}}]
  hookClients: [{ipBlock: {cidr: 10.0.0.0/24}}]
podDisruptionBudget: {minAvailable: 3}
podLabels: {team: nlp}
podAnnotations: {note: "x: y"}
nodeSelector: {pool: system}
tolerations: [{key: system, operator: Exists}]
`

func TestChart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values string
		kinds  int
	}{
		"default":         {"{}", 6},
		"with the hook":   {"hook: {enabled: true}", 7},
		"as in weir.yaml": {read(t, "values.yaml"), 7},
		"changed":         {changed, 7},
		"TLS alone":       {"tls: {secret: gate-tls}", 6},
		"TLS and hook":    {"{tls: {secret: gate-tls}, hook: {enabled: true}}", 7},
		"a signing key":   {"signing: {secret: log-key}", 6},
		"one replica":     {"{replicas: 1, networkPolicy: {enabled: false}}", 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := render(t, valuesOf(t, c.values))
			if err != nil {
				t.Fatal(err)
			}
			objects, err := decode(t, text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if len(objects) != c.kinds {
				t.Errorf("%d objects, want %d\n%s", len(objects), c.kinds, text)
			}
			d := one[appsv1.Deployment](t, objects)
			checkPod(t, d)
			checkService(t, one[corev1.Service](t, objects), d)
		})
	}
}

// checkPod holds every rendering to what a pod of the gate has to be.
func checkPod(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	pod := d.Spec.Template.Spec
	if len(pod.Containers) != 1 {
		t.Fatalf("%d containers", len(pod.Containers))
	}
	c := pod.Containers[0]
	yes := func(what string, p *bool, want bool) {
		if p == nil || *p != want {
			t.Errorf("%s is not %v", what, want)
		}
	}
	yes("the token's mount", pod.AutomountServiceAccountToken, false)
	yes("the pod's runAsNonRoot", pod.SecurityContext.RunAsNonRoot, true)
	yes("runAsNonRoot", c.SecurityContext.RunAsNonRoot, true)
	yes("the read-only root", c.SecurityContext.ReadOnlyRootFilesystem, true)
	yes("privilege escalation", c.SecurityContext.AllowPrivilegeEscalation, false)
	if pod.SecurityContext.RunAsUser == nil || *pod.SecurityContext.RunAsUser == 0 || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		!slices.Contains(c.SecurityContext.Capabilities.Drop, "ALL") {
		t.Errorf("security of the pod: %+v %+v", pod.SecurityContext, c.SecurityContext)
	}
	if c.LivenessProbe.HTTPGet.Path != "/livez" || c.ReadinessProbe.HTTPGet.Path != "/readyz" {
		t.Errorf("probes: %+v %+v", c.LivenessProbe, c.ReadinessProbe)
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("resources: %+v", c.Resources)
	}
	if c.Env[0].Name != "DATABASE_URL" || c.Env[0].Value != "" || c.Env[0].ValueFrom.SecretKeyRef == nil {
		t.Errorf("the database is not from a secret: %+v", c.Env)
	}
	for _, m := range c.VolumeMounts {
		if !m.ReadOnly {
			t.Errorf("volume %s can be written", m.Name)
		}
	}
}

// checkService holds every rendering to what an API server takes: ports with names and
// numbers of their own, each to one that the pod has, in both objects.
func checkService(t *testing.T, s *corev1.Service, d *appsv1.Deployment) {
	t.Helper()
	names, numbers := map[string]bool{}, map[int32]bool{}
	for _, p := range s.Spec.Ports {
		if names[p.Name] || numbers[p.Port] {
			t.Errorf("port %s %d is there twice", p.Name, p.Port)
		}
		names[p.Name], numbers[p.Port] = true, true
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal }) {
			t.Errorf("port %s leads to %s, which the pod has not", p.Name, p.TargetPort.StrVal)
		}
	}
}

func TestChangedValues(t *testing.T) {
	t.Parallel()
	text, err := render(t, valuesOf(t, changed))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(t, text)
	if err != nil {
		t.Fatal(err)
	}
	d := one[appsv1.Deployment](t, objects)
	c := d.Spec.Template.Spec.Containers[0]
	if *d.Spec.Replicas != 5 || c.Image != "registry.example/weir@sha256:9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab" {
		t.Errorf("%d replicas of %s", *d.Spec.Replicas, c.Image)
	}
	if diff := cmp.Diff([]string{"serve", "--listen=0.0.0.0:8080", "--config=/etc/weir", "--packs=data_rights,/etc/weir/house.yaml", "--base-url=https://weir.example",
		"--tls-cert=/etc/weir-tls/tls.crt", "--tls-key=/etc/weir-tls/tls.key", "--signing-key=/etc/weir-signing/old.key,/etc/weir-signing/new.key", "--hooks-listen=0.0.0.0:8443", "--hooks-cert=/etc/weir-hook/tls.crt", "--hooks-key=/etc/weir-hook/tls.key",
		"--hooks-client-ca=/etc/weir-hook-clients/ca.crt", "--hooks-service=gpu-cluster", "--hooks-project=default", "--hooks-client-names=a,b"}, c.Args); diff != "" {
		t.Error(diff)
	}
	if s := one[corev1.Service](t, objects); c.ReadinessProbe.HTTPGet.Scheme != corev1.URISchemeHTTPS || c.LivenessProbe.HTTPGet.Scheme != corev1.URISchemeHTTPS ||
		s.Spec.Ports[0].Port != 8080 || !slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "gate-tls" }) {
		t.Errorf("TLS: %+v, %+v", c.ReadinessProbe, s.Spec.Ports)
	}
	// Readable by the pod's group, which fsGroup gives the files to, and by nobody else.
	if i := slices.IndexFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "signing" }); i < 0 || d.Spec.Template.Spec.Volumes[i].Secret.SecretName != "log-key" ||
		*d.Spec.Template.Spec.Volumes[i].Secret.DefaultMode != 0o440 || !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "signing" && m.MountPath == "/etc/weir-signing" }) {
		t.Errorf("signing key: %+v, %+v", d.Spec.Template.Spec.Volumes, c.VolumeMounts)
	}
	if ref := c.Env[0].ValueFrom.SecretKeyRef; ref.Name != "pg" || ref.Key != "url" || c.EnvFrom[0].SecretRef.Name != "weir-endpoints" {
		t.Errorf("environment: %+v %+v", c.Env, c.EnvFrom)
	}
	if m := one[corev1.ConfigMap](t, objects); strings.TrimSuffix(m.Data["policies.yaml"], "\n") != "x-note: \"two: lines\"\npolicies: []" ||
		strings.TrimSuffix(m.Data["access.yaml"], "\n") != "issuers: []\ngrants: []" {
		t.Errorf("declarations: %q", m.Data)
	}
	if b := one[policyv1.PodDisruptionBudget](t, objects); b.Spec.MinAvailable.IntValue() != 3 || !maps.Equal(b.Spec.Selector.MatchLabels, d.Spec.Selector.MatchLabels) {
		t.Errorf("budget: %+v", b.Spec)
	}
	if n := one[networkingv1.NetworkPolicy](t, objects); n.Spec.Ingress[1].From[0].IPBlock.CIDR != "10.0.0.0/24" || n.Spec.Egress[1].Ports[0].Port.IntValue() != 6432 {
		t.Errorf("network policy: %+v", n.Spec)
	}
	for _, w := range one[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects).Webhooks {
		if string(w.ClientConfig.CABundle) != "foo" || *w.TimeoutSeconds != 5 || w.NamespaceSelector == nil {
			t.Errorf("webhook: %+v", w)
		}
	}
}

func TestWebhookFailsClosed(t *testing.T) {
	t.Parallel()
	objects, err := decode(t, read(t, "weir.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]admissionregistrationv1.OperationType{}
	for _, w := range one[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects).Webhooks {
		if *w.FailurePolicy != admissionregistrationv1.Fail || *w.SideEffects != admissionregistrationv1.SideEffectClassNoneOnDryRun ||
			!slices.Equal(w.AdmissionReviewVersions, []string{"v1"}) || *w.MatchPolicy != admissionregistrationv1.Equivalent || len(w.MatchConditions) != 1 ||
			*w.ClientConfig.Service.Path != "/hooks/kubernetes/validate" || w.ClientConfig.URL != nil {
			t.Errorf("%s: %+v", w.Name, w)
		}
		for _, r := range w.Rules {
			name := r.APIGroups[0] + "/" + r.APIVersions[0] + "/" + r.Resources[0]
			if rules[name] = r.Operations; len(r.APIGroups)+len(r.APIVersions)+len(r.Resources) != 3 {
				t.Errorf("%s: more than one thing in a rule: %+v", w.Name, r)
			}
			if labelled := w.ObjectSelector.MatchLabels["weir.dev/gate"] == "true"; labelled != (r.Resources[0] == "jobs") {
				t.Errorf("%s: by label %v", name, labelled)
			}
		}
	}
	both := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
	if diff := cmp.Diff(map[string][]admissionregistrationv1.OperationType{"batch/v1/jobs": both, "trainer.kubeflow.org/v1alpha1/trainjobs": both,
		"kubeflow.org/v1/pytorchjobs": both, "ray.io/v1/rayjobs": both, "jobset.x-k8s.io/v1alpha2/jobsets": both}, rules); diff != "" {
		t.Error(diff)
	}
}

// A value that nobody knows must not be overlooked: it may be what was to close something.
func TestValuesAreChecked(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"an unknown value":  "replicaCount: 3",
		"a misspelt one":    "hook: {enable: true}",
		"a wrong type":      "replicas: many",
		"a bad digest":      "image: {repository: x, digest: latest}",
		"a fail-open hook":  "hook: {enabled: true, failurePolicy: Ignore}",
		"too long a limit":  "hook: {timeoutSeconds: 60}",
		"no database":       "database: {secret: \"\"}",
		"a signing path":    "signing: {secret: x, keys: [../weir/people.yaml]}",
		"no signing key":    "signing: {secret: x, keys: []}",
		"an injected image": "image: {pullPolicy: \"Always\\nprivileged: true\"}",
	} {
		if text, err := render(t, valuesOf(t, values)); err == nil {
			t.Errorf("%s is rendered:\n%s", name, text)
		}
	}
}

func TestManifests(t *testing.T) {
	t.Parallel()
	want, err := render(t, valuesOf(t, read(t, "values.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	want = "# Rendered from deploy/helm/weir with values.yaml; go test . -update writes it.\n" + want
	if *update {
		if err := os.WriteFile("weir.yaml", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, read(t, "weir.yaml")); diff != "" {
		t.Errorf("weir.yaml is not what the chart gives; go test . -update writes it\n%s", diff)
	}
	for _, file := range []string{"namespace.yaml", "admission-control.yaml", "admission-kubeconfig.yaml"} {
		objects, err := decode(t, read(t, file))
		if err != nil || len(objects) != 1 {
			t.Errorf("%s: %d objects, %v", file, len(objects), err)
			continue
		}
		if c, ok := objects[0].(*apiserverv1.AdmissionConfiguration); ok {
			plugin, err := decode(t, string(c.Plugins[0].Configuration.Raw))
			if err != nil || len(plugin) != 1 {
				t.Errorf("%s: the plugin's: %v", file, err)
			}
		}
	}
	if _, err := decode(t, "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {port: []}\n"); err == nil {
		t.Error("an unknown field is not noticed")
	}
}

// The certificates of the script are what the webhook and its callers need.
func TestCertificates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // the second run renews
		if out, err := exec.CommandContext(t.Context(), "./certificates.sh", dir, "gate", "ml").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(read(t, filepath.Join(dir, "ca.crt")))) {
		t.Fatal("no CA")
	}
	for name, c := range map[string]struct {
		use x509.ExtKeyUsage
		cn  string
	}{"tls": {x509.ExtKeyUsageServerAuth, "gate.ml.svc"}, "client": {x509.ExtKeyUsageClientAuth, "kube-apiserver-weir"}, "kueue": {x509.ExtKeyUsageClientAuth, "weir-kueue"}} {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		opts := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{c.use}}
		if name == "tls" {
			opts.DNSName = c.cn
		}
		if _, err := pair.Leaf.Verify(opts); err != nil || pair.Leaf.Subject.CommonName != c.cn {
			t.Errorf("%s: %s, %v", name, pair.Leaf.Subject.CommonName, err)
		}
		opts.KeyUsages = []x509.ExtKeyUsage{map[bool]x509.ExtKeyUsage{true: x509.ExtKeyUsageClientAuth, false: x509.ExtKeyUsageServerAuth}[name == "tls"]}
		if _, err := pair.Leaf.Verify(opts); err == nil {
			t.Errorf("%s can be used the other way round", name)
		}
	}
}

// What the tests of the hook send is what an API server sends.
func TestReviewsAreReal(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../cmd/weir/kubernetes/testdata/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d reviews, %v", len(files), err)
	}
	for _, file := range files {
		data := read(t, file)
		data = strings.Replace(data, "admission.k8s.io/v1beta1", "admission.k8s.io/v1", 1) // of the same shape
		objects, err := decode(t, data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		r := one[admissionv1.AdmissionReview](t, objects)
		if r.Request == nil || r.Request.UID == "" || !bytes.Contains(r.Request.Object.Raw, []byte(r.Request.Kind.Kind)) {
			t.Errorf("%s: %+v", file, r.Request)
		}
	}
}
