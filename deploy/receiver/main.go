// Command receiver is an example of the other side of weir's webhooks: it
// verifies each message with the Standard Webhooks library, on the raw bytes and
// before it looks into them, and prints one line for each.
//
//	RECEIVER_SECRET=whsec_… receiver -listen 127.0.0.1:8099
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8099", "address to listen on")
	flag.Parse()
	secret := os.Getenv("RECEIVER_SECRET")
	if secret == "" {
		log.Fatal("receiver: RECEIVER_SECRET is not set; it is the endpoint's whsec_… secret")
	}
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		log.Fatalf("receiver: RECEIVER_SECRET: %v", err)
	}
	r := &receiver{hook: hook, seen: map[string]bool{}, out: os.Stdout}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /hooks/weir", r.receive)
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: *listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

type receiver struct {
	hook *standardwebhooks.Webhook
	out  io.Writer

	mu   sync.Mutex
	seen map[string]bool // a real receiver keeps the ids in its database
}

func (r *receiver) receive(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 64<<10))
	if err != nil {
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
		return
	}
	if err := r.hook.Verify(body, req.Header); err != nil {
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
