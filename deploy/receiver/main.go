// Command receiver is an example of the other side of weir's webhooks: it
// verifies each message on the raw bytes, before it looks into them, drops
// repetitions, and prints one line for each. receiver.py does the same in Python.
//
//	RECEIVER_SECRET=whsec_… receiver -listen 127.0.0.1:8099
//
// RECEIVER_SECRET may hold several secrets with spaces between, while one is
// being replaced. With RECEIVER_PUBLIC_KEY=whpk_… a v1a signature (ed25519) is
// needed too: then this side holds nothing with which messages could be forged.
package main

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8099", "address to listen on")
	flag.Parse()
	r, err := newReceiver(os.Getenv("RECEIVER_SECRET"), os.Getenv("RECEIVER_PUBLIC_KEY"), os.Stdout)
	if err != nil {
		log.Fatalf("receiver: %v", err)
	}
	l, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatalf("receiver: %v", err)
	}
	fmt.Printf("listening on %s\n", l.Addr())
	server := &http.Server{Handler: r.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	log.Fatal(server.Serve(l))
}

type receiver struct {
	hooks  []*standardwebhooks.Webhook
	public ed25519.PublicKey // nil when v1 is enough
	out    io.Writer

	mu   sync.Mutex
	seen map[string]bool // a real receiver keeps the ids in its database
}

func newReceiver(secrets, public string, out io.Writer) (*receiver, error) {
	r := &receiver{seen: map[string]bool{}, out: out}
	for _, s := range strings.Fields(secrets) {
		if !strings.HasPrefix(s, "whsec_") || s == "whsec_" { // the library takes an empty one, which everybody has
			return nil, errors.New("RECEIVER_SECRET: is not whsec_ and base64")
		}
		hook, err := standardwebhooks.NewWebhook(s)
		if err != nil {
			return nil, errors.New("RECEIVER_SECRET: is not whsec_ and base64")
		}
		r.hooks = append(r.hooks, hook)
	}
	if len(r.hooks) == 0 {
		return nil, errors.New("RECEIVER_SECRET is not set; it is the endpoint's whsec_… secret")
	}
	if public != "" {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(public, "whpk_"))
		if err != nil || len(key) != ed25519.PublicKeySize || !strings.HasPrefix(public, "whpk_") {
			return nil, errors.New("RECEIVER_PUBLIC_KEY: is not whpk_ and the base64 of an ed25519 public key")
		}
		r.public = key
	}
	return r, nil
}

func (r *receiver) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/weir", r.receive)
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	return mux
}

// verify checks the signatures that this receiver asks for, and by the library
// that the timestamp is of the last five minutes.
func (r *receiver) verify(body []byte, h http.Header) error {
	err := errors.New("no secret")
	for _, hook := range r.hooks {
		if err = hook.Verify(body, h); err == nil {
			break
		}
	}
	if err != nil || r.public == nil {
		return err
	}
	signed := fmt.Appendf(nil, "%s.%s.%s", h.Get("webhook-id"), h.Get("webhook-timestamp"), body)
	for s := range strings.FieldsSeq(h.Get("webhook-signature")) {
		encoded, ok := strings.CutPrefix(s, "v1a,")
		if sig, err := base64.StdEncoding.DecodeString(encoded); ok && err == nil && ed25519.Verify(r.public, signed, sig) {
			return nil
		}
	}
	return errors.New("no v1a signature of this key")
}

func (r *receiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 64<<10))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err := r.verify(body, req.Header); err != nil {
		fmt.Fprintf(r.out, "REFUSED  signature: %v\n", err)
		http.Error(w, "bad signature", http.StatusUnauthorized)
		return
	}
	var msg struct {
		Type string `json:"type"`
		Data struct {
			Screening string   `json:"screening_id"`
			Review    string   `json:"review_id"`
			Terms     []string `json:"terms"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &msg); err != nil {
		http.Error(w, "not JSON", http.StatusBadRequest)
		return
	}
	id := req.Header.Get("webhook-id")
	r.mu.Lock()
	again := r.seen[id]
	r.seen[id] = true
	r.mu.Unlock()
	if again { // at least once means: sometimes twice
		fmt.Fprintf(r.out, "REPEATED %s\n", id)
		return
	}
	fmt.Fprintf(r.out, "VERIFIED %s screening=%s review=%s terms=%v\n", msg.Type, msg.Data.Screening, msg.Data.Review, msg.Data.Terms)
}
