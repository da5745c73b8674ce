package webhooks

import (
	"os"
	"strings"
	"testing"
)

// The page for receivers and operators knows every word that they can meet.
func TestDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	words := append(Types(), TypePing)
	words = append(words, States()...)
	for _, f := range Formats() {
		words = append(words, string(f))
	}
	for _, c := range Classes() {
		words = append(words, string(c))
	}
	for _, w := range words {
		if !strings.Contains(string(page), "`"+w+"`") {
			t.Errorf("docs/webhooks.md does not say what `%s` is", w)
		}
	}
}

func TestBreakerDefaults(t *testing.T) {
	t.Parallel()
	b := Breaker{}.WithDefaults()
	if err := b.Validate(); err != nil || b.Failures != 10 || b.Cooldown.Minutes() != 5 || b.MaxCooldown.Hours() != 1 || b.DisableAfter.Hours() != 120 {
		t.Errorf("%+v, %v", b, err)
	}
	for _, bad := range []Breaker{{Failures: -1}, {Cooldown: -1}, {MaxCooldown: 1}, {DisableAfter: -1}} {
		if err := bad.WithDefaults().Validate(); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}
