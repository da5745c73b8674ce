package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// gateLabel makes the gate look at a batch Job too: a queue with this check gates
// all that waits in it.
const gateLabel = "weir.dev/gate"

// verdict is what the gate says about an object. Only admitted lets it run.
type verdict struct {
	result  string // of the gate: admitted, blocked, pending, closed, invalid, unavailable
	message string
}

// gate asks weir's admission webhook, as the API server would. So the object is
// read in one place, and the spec that is screened is the same whoever asks.
type gate struct {
	url    string
	client *http.Client
}

// gateFiles are PEM files: the CA of the gate, and what this controller shows it.
type gateFiles struct{ ca, cert, key string }

const gateTimeout = 10 * time.Second

func newGate(url string, files gateFiles) (*gate, error) {
	roots, err := os.ReadFile(files.ca)
	if err != nil {
		return nil, fmt.Errorf("CA of the gate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(roots) {
		return nil, fmt.Errorf("CA of the gate: %s holds no certificate in PEM", files.ca)
	}
	own := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // read at each handshake: it is renewed
		pair, err := tls.LoadX509KeyPair(files.cert, files.key)
		return &pair, err
	}
	if _, err := own(nil); err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, GetClientCertificate: own}, ForceAttemptHTTP2: true}
	client := &http.Client{Transport: transport, Timeout: gateTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("the gate answers with a redirect") }}
	return &gate{url: url, client: client}, nil
}

// ask gives the gate's verdict. With an error nothing is known.
func (g *gate) ask(ctx context.Context, object *unstructured.Unstructured, resource string) (verdict, error) {
	object = object.DeepCopy()
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[gateLabel] = "true"
	object.SetLabels(labels)
	raw, err := object.MarshalJSON()
	if err != nil {
		return verdict{}, err
	}
	gvk := object.GroupVersionKind()
	kind := metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	gvr := metav1.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: resource}
	dryRun := false
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{UID: uuid.NewUUID(), Kind: kind, RequestKind: &kind, Resource: gvr, RequestResource: &gvr,
			Name: object.GetName(), Namespace: object.GetNamespace(), Operation: admissionv1.Create, DryRun: &dryRun, Object: runtime.RawExtension{Raw: raw}},
	}
	body, err := json.Marshal(review)
	if err != nil {
		return verdict{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"?timeout="+gateTimeout.String(), bytes.NewReader(body))
	if err != nil {
		return verdict{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := g.client.Do(req)
	if err != nil {
		return verdict{}, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return verdict{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return verdict{}, fmt.Errorf("the gate answers %s", resp.Status)
	}
	return readVerdict(answer, review.Request)
}

// readVerdict takes an answer for what it says only if it is the answer to this question.
func readVerdict(answer []byte, asked *admissionv1.AdmissionRequest) (verdict, error) {
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil {
		return verdict{}, fmt.Errorf("the gate's answer: %w", err)
	}
	r := review.Response
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || r == nil || r.UID != asked.UID {
		return verdict{}, errors.New("the gate's answer is not the answer to this question")
	}
	v := verdict{result: r.AuditAnnotations["result"], message: "weir: admitted"}
	if r.Result != nil && r.Result.Message != "" {
		v.message = r.Result.Message
	}
	if r.Allowed != (v.result == "admitted") {
		return verdict{}, fmt.Errorf("the gate allows %v and says %q", r.Allowed, v.result)
	}
	return v, nil
}
