package ledger

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"
)

// Entry is one audit event as the log keeps it. The entries of a subject are a
// chain of their own: Hash covers PrevHash, the hash of the one before, and what
// the entry says but for its project, which the tree covers.
type Entry struct {
	Subject  string         // id of a screening, or what else it is about, like endpoint/reviews
	Project  string         // "" when it belongs to the whole deployment
	Seq      int            // place in its chain, from 1
	Type     string         // like screening.decided
	Actor    string         // a declared person or service, or weir itself
	At       time.Time      // the database's, UTC, microseconds
	Body     jsontext.Value // what happened, as JSON on one line
	PrevHash []byte         // empty for the first of a chain
	Hash     []byte         // SHA-256
}

// ErrEntry: a line of a log is not an entry in the one form that Leaf writes, or
// its hash is not that of what it says.
var ErrEntry = errors.New("not an entry of the log")

// timeLayout is the form of At, in the leaf and under the hash.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// leaf is the written form. Its members are in the order of their names.
type leaf struct {
	Actor    string         `json:"actor"`
	At       string         `json:"at"`
	Body     jsontext.Value `json:"body"`
	Hash     hexBytes       `json:"hash"`
	PrevHash hexBytes       `json:"prev_hash"`
	Project  string         `json:"project"`
	Seq      int            `json:"seq"`
	Subject  string         `json:"subject"`
	Type     string         `json:"type"`
}

type hexBytes []byte

func (h hexBytes) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }
func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// Leaf gives the bytes that the tree is built over: one line of JSON without its
// end. An entry has exactly one such form.
func (e Entry) Leaf() ([]byte, error) {
	if !e.Body.IsValid() || bytes.ContainsAny(e.Body, "\r\n") {
		return nil, fmt.Errorf("%w: the body of %s, number %d, is not JSON on one line", ErrEntry, e.Subject, e.Seq)
	}
	line, err := json.Marshal(leaf{Actor: e.Actor, At: e.At.UTC().Format(timeLayout), Body: nil, Hash: e.Hash,
		PrevHash: e.PrevHash, Project: e.Project, Seq: e.Seq, Subject: e.Subject, Type: e.Type})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	// The body goes in as it is: its bytes are under the chain's hash. No string
	// before it can hold this, as its quotation marks would be escaped.
	return bytes.Replace(line, []byte(`"body":null,`), fmt.Appendf(nil, `"body":%s,`, []byte(e.Body)), 1), nil
}

// ParseEntry reads a leaf. It takes only the form that Leaf writes and checks the
// hash. The error is ErrEntry.
func ParseEntry(line []byte) (Entry, error) {
	var l leaf
	if err := json.Unmarshal(line, &l, json.RejectUnknownMembers(true)); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	at, err := time.Parse(timeLayout, l.At)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: its time is not one", ErrEntry)
	}
	e := Entry{Subject: l.Subject, Project: l.Project, Seq: l.Seq, Type: l.Type, Actor: l.Actor, At: at,
		Body: l.Body, PrevHash: l.PrevHash, Hash: l.Hash}
	again, err := e.Leaf()
	if err != nil {
		return Entry{}, err
	}
	if !bytes.Equal(again, line) {
		return Entry{}, fmt.Errorf("%w: it is written in another form than the log's", ErrEntry)
	}
	if sum := e.sum(); !bytes.Equal(sum[:], e.Hash) {
		return Entry{}, fmt.Errorf("%w: its hash is not that of what it says", ErrEntry)
	}
	return e, nil
}

// sum is the chain's hash, as the database's trigger computes it.
func (e Entry) sum() [sha256.Size]byte {
	text := bytes.Clone(e.PrevHash)
	text = fmt.Appendf(text, "%s\n%d\n%s\n%s\n%s\n", e.Subject, e.Seq, e.Type, e.Actor, e.At.UTC().Format(timeLayout))
	return sha256.Sum256(append(text, e.Body...))
}

// LeafHash is the RFC 6962 hash of a leaf.
func LeafHash(leaf []byte) tlog.Hash { return tlog.RecordHash(leaf) }
