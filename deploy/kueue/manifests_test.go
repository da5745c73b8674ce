package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	training "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	ray "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// decoder reads into the types of the kinds that are gated, and of the
// manifests; an unknown or misspelt field is an error.
func decoder(t testing.TB) runtime.Decoder {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, rbacv1.AddToScheme,
		kueue.AddToScheme, jobset.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	// Their own registration needs more of their projects than the types.
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "trainer.kubeflow.org", Version: "v1alpha1", Kind: "TrainJob"}, &trainer.TrainJob{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "kubeflow.org", Version: "v1", Kind: "PyTorchJob"}, &training.PyTorchJob{})
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "ray.io", Version: "v1", Kind: "RayJob"}, &ray.RayJob{})
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, s, s, serializer.SerializerOptions{Yaml: true, Strict: true})
}

func TestManifests(t *testing.T) {
	t.Parallel()
	d := decoder(t)
	for _, file := range []string{"manifests.yaml", "../kubernetes/example-trainjob.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(data), "\n---\n") {
			o, _, err := d.Decode([]byte(doc), nil, nil)
			if err != nil {
				t.Errorf("%s: %v\n%s", file, err, doc)
				continue
			}
			if c, ok := o.(*kueue.AdmissionCheck); ok && c.Spec.ControllerName != controllerName {
				t.Errorf("the check names %s", c.Spec.ControllerName)
			}
			if role, ok := o.(*rbacv1.ClusterRole); ok {
				checkRole(t, role)
			}
		}
	}
}

// checkRole: the controller may read every kind that it asks about, and write states.
func checkRole(t *testing.T, role *rbacv1.ClusterRole) {
	t.Helper()
	may := map[string]bool{}
	for _, r := range role.Rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, verb := range r.Verbs {
					may[verb+" "+group+"/"+resource] = true
					if write := verb != "get" && verb != "list" && verb != "watch"; write && !strings.HasSuffix(resource, "/status") {
						t.Errorf("may %s %s", verb, resource)
					}
				}
			}
		}
	}
	for kind, resource := range resources {
		if group, _, _ := strings.Cut(kind, "/"); !may["get "+group+"/"+resource] {
			t.Errorf("may not read %s/%s", group, resource)
		}
	}
}

// The objects that weir's tests send are objects of these kinds: every field of
// theirs is one that the types know.
func TestRecordedObjectsAreReal(t *testing.T) {
	t.Parallel()
	d := decoder(t)
	files, err := filepath.Glob("../../cmd/weir/kubernetes/testdata/*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d reviews, %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(data, &review); err != nil {
			t.Fatal(err)
		}
		o, gvk, err := d.Decode(review.Request.Object.Raw, nil, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if o == nil || gvk.Kind != review.Request.Kind.Kind || gvk.Group != review.Request.Kind.Group || gvk.Version != review.Request.Kind.Version {
			t.Errorf("%s: %v", file, gvk)
		}
		if resource := resources[gvk.Group+"/"+gvk.Kind]; resource != review.Request.Resource.Resource {
			t.Errorf("%s: resource %q", file, resource)
		}
		seen[gvk.Kind] = true
		misspelt := bytes.Replace(review.Request.Object.Raw, []byte(`"spec":`), []byte(`"spek":`), 1)
		misspelt = bytes.Replace(misspelt, []byte(`"spec": `), []byte(`"spek": `), 1)
		if _, _, err := d.Decode(misspelt, nil, nil); err == nil {
			t.Errorf("%s: a misspelt field is not noticed", file)
		}
	}
	if len(seen) != len(resources) {
		t.Errorf("only %v", seen)
	}
}
