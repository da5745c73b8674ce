package webhooks

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"
)

// afterRequest reads one request, then lets answer loose on the connection.
func afterRequest(answer func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		answer(c)
	}
}

// drip writes a byte at a time, for ever, so that no pause is ever long.
func drip(c net.Conn, head string) {
	if _, err := io.WriteString(c, head); err != nil {
		return
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := c.Write([]byte{'x'}); err != nil {
			return
		}
	}
}

func hang(c net.Conn) { io.Copy(io.Discard, c) }

func reset(c net.Conn) { c.(*net.TCPConn).SetLinger(0) } // and close, on return

// Fault test 24: whatever a receiver does with its time, the attempt ends when
// it should, and says why.
func TestHostileTiming(t *testing.T) {
	t.Parallel()
	const long = patience // for those that must end by themselves
	const short = 300 * time.Millisecond
	tests := []struct {
		name    string
		serve   func(net.Conn)
		timeout time.Duration
		want    Class
	}{
		{"accepts and says nothing", hang, short, ClassTimeout},
		{"never answers", afterRequest(hang), short, ClassTimeout},
		{"drips its headers", afterRequest(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nX: ") }), short, ClassTimeout},
		{"drips its body", afterRequest(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n") }), short, ClassTimeout},
		{"drips an endless body", afterRequest(func(c net.Conn) { drip(c, "HTTP/1.1 200 OK\r\n\r\n") }), short, ClassTimeout},
		{"drips the body of a failure", afterRequest(func(c net.Conn) { drip(c, "HTTP/1.1 500 No\r\n\r\n") }), short, ClassHTTPStatus},
		{"resets in the request", func(c net.Conn) { c.Read(make([]byte, 1)); reset(c) }, long, ClassReset},
		{"resets after the request", afterRequest(reset), long, ClassReset},
		{"closes after the request", afterRequest(func(net.Conn) {}), long, ClassReset},
		{"breaks off in the headers", afterRequest(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ") }), long, ClassReset},
		{"breaks off in the body", afterRequest(func(c net.Conn) {
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
		}), long, ClassReset},
		{"does not speak HTTP", afterRequest(func(c net.Conn) { io.WriteString(c, "220 mail.example ESMTP\r\n") }), long, ClassReset},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := loopback("legal", "http://"+rawServer(t, tt.serve))
			e.Timeout = tt.timeout
			a := newTestSender(t, e, Config{}).send(t.Context(), message("legal"))
			if a.Class != tt.want || a.Delivered() {
				t.Errorf("class %q (%s), want %q", a.Class, a.Detail, tt.want)
			}
			if strings.Contains(a.Detail, "ESMTP") {
				t.Errorf("detail quotes the receiver: %q", a.Detail)
			}
			if tt.timeout == short && a.Duration < short*9/10 {
				t.Errorf("ended after %v, before the timeout", a.Duration)
			}
			if a.Duration > patience/2 {
				t.Errorf("ended after %v only", a.Duration)
			}
		})
	}
}

// flood writes until the other side has had enough, and counts.
func flood(c net.Conn, head string, chunk []byte, sent *atomic.Int64) {
	n, err := io.WriteString(c, head)
	for err == nil {
		sent.Add(int64(n))
		n, err = c.Write(chunk)
	}
}

// Fault test 25: an answer of any size costs a few kilobytes here.
func TestHostileSize(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	if _, err := z.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	line := []byte("X-Pad: " + strings.Repeat("p", 1000) + "\r\n")
	tests := []struct {
		name  string
		head  string
		chunk []byte
		want  Class
	}{
		{"endless body", "HTTP/1.1 200 OK\r\n\r\n", bytes.Repeat([]byte("0123456789"), 1000), ""},
		{"endless control characters", "HTTP/1.1 200 OK\r\n\r\n", make([]byte, 10000), ""},
		{"endless body of a failure", "HTTP/1.1 500 No\r\n\r\n", bytes.Repeat([]byte("0123456789"), 1000), ClassHTTPStatus},
		{"gzip bomb", "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", bomb.Bytes(), ""},
		{"claims a terabyte", "HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n", make([]byte, 10000), ""},
		{"endless headers", "HTTP/1.1 200 OK\r\n", line, ClassBodyLimit},
		{"one endless header", "HTTP/1.1 200 OK\r\nX: ", bytes.Repeat([]byte("p"), 10000), ClassBodyLimit},
		{"endless informational answers", "", []byte("HTTP/1.1 103 Early Hints\r\n" + string(line) + "\r\n"), ClassBodyLimit},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var sent atomic.Int64
			ended := make(chan struct{})
			addr := rawServer(t, afterRequest(func(c net.Conn) {
				defer close(ended)
				flood(c, tt.head, tt.chunk, &sent)
			}))
			a := newTestSender(t, loopback("legal", "http://"+addr), Config{}).send(t.Context(), message("legal"))
			if a.Class != tt.want {
				t.Errorf("class %q (%s), want %q", a.Class, a.Detail, tt.want)
			}
			if len(a.Answer) > maxAnswerBytes || !utf8.ValidString(a.Answer) {
				t.Errorf("kept %d bytes, valid %t", len(a.Answer), utf8.ValidString(a.Answer))
			}
			if tt.want != ClassBodyLimit && (!a.Truncated || len(a.Answer) < maxAnswerBytes-8) {
				t.Errorf("kept %d bytes, truncated %t; want about %d, true", len(a.Answer), a.Truncated, maxAnswerBytes)
			}
			<-ended // the connection was closed, not drained
			// What was sent is what fits the socket buffers of both sides.
			if n := sent.Load(); n > 64<<20 {
				t.Errorf("the receiver could send %d bytes", n)
			}
		})
	}
}
