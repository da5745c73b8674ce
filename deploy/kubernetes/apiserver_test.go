package kubernetes

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	sigsyaml "sigs.k8s.io/yaml"
)

// cluster is the part of an API server that asks webhooks, configured by what
// this directory ships, in front of the gate as the chart starts it.
type cluster struct {
	t      *testing.T
	dir    string
	gate   *exec.Cmd
	hook   string // host:port
	config *admissionregistrationv1.ValidatingWebhookConfiguration
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir, err := os.MkdirTemp("", "weir-cluster-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // the account of the private Postgres has to pass
		t.Fatal(err)
	}
	c := &cluster{t: t, dir: dir}
	certs := filepath.Join(dir, "certs")
	if out, err := exec.CommandContext(t.Context(), "./certificates.sh", certs).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	values := valuesOf(t, read(t, "values.yaml"))
	hook := values["hook"].(map[string]any)
	hook["caBundle"] = base64.StdEncoding.EncodeToString([]byte(read(t, filepath.Join(certs, "ca.crt"))))
	text, err := render(t, values)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(t, text)
	if err != nil {
		t.Fatal(err)
	}
	c.config = one[admissionregistrationv1.ValidatingWebhookConfiguration](t, objects)
	c.start(one[appsv1.Deployment](t, objects).Spec.Template.Spec.Containers[0].Args, one[corev1.ConfigMap](t, objects).Data, certs)
	return c
}

// start runs the gate with the arguments of the Deployment.
func (c *cluster) start(args []string, config map[string]string, certs string) {
	c.t.Helper()
	binary, etc := filepath.Join(c.dir, "weir"), filepath.Join(c.dir, "etc")
	build := exec.CommandContext(c.t.Context(), "go", "build", "-o", binary, "./cmd/weir")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Mkdir(etc, 0o755); err != nil {
		c.t.Fatal(err)
	}
	for name, data := range config {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(data), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	key := filepath.Join(certs, "signing.key")
	if out, err := exec.CommandContext(c.t.Context(), "openssl", "genpkey", "-algorithm", "ed25519", "-out", key).CombinedOutput(); err != nil {
		c.t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Chmod(key, 0o440); err != nil { // as a secret is mounted
		c.t.Fatal(err)
	}
	here := strings.NewReplacer("0.0.0.0:8080", "127.0.0.1:0", "0.0.0.0:8443", "127.0.0.1:0",
		"/etc/weir-hook-clients", certs, "/etc/weir-hook", certs, "/etc/weir-signing", certs, "/etc/weir", etc)
	for i := range args {
		args[i] = here.Replace(args[i])
	}
	c.gate = exec.Command(binary, append(args, "--state-dir", filepath.Join(c.dir, "state"))...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DATABASE_URL=") && (!strings.HasPrefix(v, "WEIR_") || strings.HasPrefix(v, "WEIR_PG_")) {
			c.gate.Env = append(c.gate.Env, v)
		}
	}
	log, err := c.gate.StderrPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.gate.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(c.stop)
	lines := bufio.NewScanner(log)
	var seen []string
	for c.hook == "" && lines.Scan() {
		var event struct{ Msg, Address string }
		if json.Unmarshal(lines.Bytes(), &event) == nil && event.Msg == "kubernetes hook listening" {
			c.hook = event.Address
		}
		seen = append(seen, lines.Text())
	}
	if c.hook == "" {
		c.t.Fatalf("no hook:\n%s", strings.Join(seen, "\n"))
	}
	go func() {
		for lines.Scan() { // or the gate would stand still when the pipe is full
		}
	}()
}

func (c *cluster) stop() {
	if c.gate.ProcessState == nil {
		_ = c.gate.Process.Signal(syscall.SIGTERM)
		_ = c.gate.Wait()
	}
}

// ResolveEndpoint is where the service is; the certificate is still checked for its name.
func (c *cluster) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	if namespace != "weir" || name != "weir" || port != 443 {
		return nil, errors.New("no such service")
	}
	return &url.URL{Scheme: "https", Host: c.hook}, nil
}

// plugin is the API server's own webhook plugin, with the shipped files for the
// client certificate, or without.
func (c *cluster) plugin(withCertificate bool) *validating.Plugin {
	c.t.Helper()
	var config struct {
		Plugins []struct{ Configuration map[string]any }
	}
	if err := sigsyaml.Unmarshal([]byte(read(c.t, "admission-control.yaml")), &config); err != nil {
		c.t.Fatal(err)
	}
	own := config.Plugins[0].Configuration
	kubeconfig := filepath.Join(c.dir, "admission-kubeconfig.yaml")
	text := strings.ReplaceAll(read(c.t, "admission-kubeconfig.yaml"), "/etc/kubernetes/weir", filepath.Join(c.dir, "certs"))
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	own["kubeConfigFile"] = kubeconfig
	data, err := json.Marshal(own)
	if err != nil {
		c.t.Fatal(err)
	}
	var file io.Reader = bytes.NewReader(data)
	if !withCertificate {
		file = nil
	}
	p, err := validating.NewValidatingAdmissionWebhook(file)
	if err != nil {
		c.t.Fatal(err)
	}
	client := fake.NewClientset(c.config, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "nlp"}})
	factory := informers.NewSharedInformerFactory(client, 0)
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(factory)
	p.SetServiceResolver(c)
	if err := p.ValidateInitialization(); err != nil {
		c.t.Fatal(err)
	}
	stop := make(chan struct{})
	c.t.Cleanup(func() { close(stop) })
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return p
}

// request is what a client asks the API server for.
type request struct {
	object, old *unstructured.Unstructured
	resource    string
	subresource string
	operation   admission.Operation
	dryRun      bool
}

func ask(t *testing.T, p *validating.Plugin, r request) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	gvk := r.object.GroupVersionKind()
	var old runtime.Object
	if r.old != nil {
		old = r.old
	}
	attributes := admission.NewAttributesRecord(r.object, old, gvk, "nlp", r.object.GetName(),
		schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: r.resource}, r.subresource, r.operation,
		&metav1.CreateOptions{}, r.dryRun, &user.DefaultInfo{Name: "ana@corp.example"})
	return p.Validate(ctx, attributes, admission.NewObjectInterfacesFromScheme(runtime.NewScheme()))
}

// trainJob is the shipped example; each change is "old → new" in its text.
func trainJob(t *testing.T, changes ...string) *unstructured.Unstructured {
	t.Helper()
	text := read(t, "example-trainjob.yaml")
	for _, c := range changes {
		old, new, _ := strings.Cut(c, " → ")
		if !strings.Contains(text, old) {
			t.Fatalf("nothing to change: %s", old)
		}
		text = strings.Replace(text, old, new, 1)
	}
	o := &unstructured.Unstructured{}
	if err := sigsyaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	o.SetName("help-desk-x7k2p")
	return o
}

func TestAPIServerAsksGate(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	p := c.plugin(true)
	create := func(o *unstructured.Unstructured) request {
		return request{object: o, resource: "trainjobs", operation: admission.Create}
	}
	update := func(old, new *unstructured.Unstructured) request {
		return request{object: new, old: old, resource: "trainjobs", operation: admission.Update}
	}
	good := create(trainJob(t))
	dry := create(trainJob(t, "help-desk@2026-11 → dry-run@2026-11"))
	dry.dryRun = true
	blocked := trainJob(t, "purposes: [customer_support] → purposes: [social_scoring]")
	status := update(trainJob(t), blocked)
	status.subresource = "status"
	job := func(labels map[string]string) request {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "x"},
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "x", "image": "x"}}}}}}}
		o.SetLabels(labels)
		return request{object: o, resource: "jobs", operation: admission.Create}
	}
	finalizer := trainJob(t)
	finalizer.SetFinalizers([]string{"example.com/x"})
	for name, x := range map[string]struct {
		request
		code int32
		want string
	}{
		"admitted":           {good, 0, ""},
		"a dry run":          {dry, 0, ""},
		"blocked":            {create(blocked), 403, `admission webhook "training.gate.weir.dev" denied the request: weir: blocked: safety:social_scoring`},
		"escalated":          {create(trainJob(t, "trust_remote_code: false → trust_remote_code: true")), 403, "weir: people have to decide first: ethics:remote_code"},
		"no spec":            {create(trainJob(t, "weir.dev/spec → weir.dev/other")), 422, "weir: the annotation weir.dev/spec is missing"},
		"changed":            {update(trainJob(t), blocked), 403, "weir: blocked"},
		"a finalizer":        {update(trainJob(t), finalizer), 0, ""},
		"the status":         {status, 0, ""},
		"a delete":           {request{object: blocked, old: blocked, resource: "trainjobs", operation: admission.Delete}, 0, ""},
		"a Job":              {job(nil), 0, ""},
		"a Job with a label": {job(map[string]string{"weir.dev/gate": "true"}), 422, `admission webhook "jobs.gate.weir.dev" denied the request: weir: the annotation`},
	} {
		err := ask(t, p, x.request)
		var refused apierrors.APIStatus
		switch {
		case x.code == 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case x.code != 0 && (!errors.As(err, &refused) || refused.Status().Code != x.code || !strings.Contains(err.Error(), x.want)):
			t.Errorf("%s: %v; want %d %s", name, err, x.code, x.want)
		}
	}
	if err := ask(t, c.plugin(false), good); err == nil {
		t.Error("an API server without a client certificate is answered")
	}
	c.stop()
	var refused apierrors.APIStatus
	if err := ask(t, p, good); !errors.As(err, &refused) || refused.Status().Code != http.StatusInternalServerError || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("without a gate: %v", err)
	}
	if err := ask(t, p, update(trainJob(t), finalizer)); err != nil {
		t.Errorf("without a gate a finalizer cannot be removed: %v", err)
	}
	relabelled := trainJob(t)
	relabelled.SetLabels(map[string]string{"weir.dev/team": "other"})
	started := trainJob(t)
	if err := unstructured.SetNestedField(started.Object, true, "spec", "suspend"); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]request{
		"the spec's annotation": update(trainJob(t), trainJob(t, "owner: ana → owner: bo")),
		"the team":              update(trainJob(t), relabelled),
		"the start":             update(started, trainJob(t)),
		"the image":             update(trainJob(t), trainJob(t, "image: registry → image: elsewhere")),
	} {
		if err := ask(t, p, r); err == nil {
			t.Errorf("without a gate %s can be changed", name)
		}
	}
}
