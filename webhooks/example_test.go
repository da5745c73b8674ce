package webhooks_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// What a receiver does: verify the raw bytes before it reads anything in them,
// and drop what it has seen by the webhook-id. The request here stands for one
// that a dispatcher sent.
func Example_receiver() {
	verifier, err := standardwebhooks.NewWebhook("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		fmt.Println(err)
		return
	}
	seen := map[string]bool{} // a database table, in earnest
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil || verifier.Verify(body, r.Header) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if id := r.Header.Get("webhook-id"); !seen[id] {
			seen[id] = true
			fmt.Printf("new message: %s\n", body)
		}
		w.WriteHeader(http.StatusNoContent) // an acknowledgement, never a decision
	}

	deliver := func(body, signedBody string) {
		at := time.Now()
		signature, err := verifier.Sign("msg_3f1c", at, []byte(signedBody))
		if err != nil {
			fmt.Println(err)
			return
		}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("webhook-id", "msg_3f1c")
		r.Header.Set("webhook-timestamp", fmt.Sprint(at.Unix()))
		r.Header.Set("webhook-signature", signature)
		w := httptest.NewRecorder()
		receive(w, r)
		fmt.Println(w.Code)
	}
	const body = `{"type":"review.opened"}`
	deliver(`{"type": "review.opened"}`, body) // one space more than was signed
	deliver(body, body)
	deliver(body, body) // sent again, since the first answer got lost
	// Output:
	// 401
	// new message: {"type":"review.opened"}
	// 204
	// 204
}
