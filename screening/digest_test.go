package screening

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestCanonical holds the rules of RFC 8785 that JSON writers usually miss.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"white space and order", " { \"b\" : [ 1 , {\"d\":2,\"c\":3} ] , \"a\" : null } ", `{"a":null,"b":[1,{"c":3,"d":2}]}`},
		{"lists keep their order", `[3,1,2]`, `[3,1,2]`},
		{"empty", `{"b":{},"a":[]}`, `{"a":[],"b":{}}`},
		{"literals", `[true,false,null]`, `[true,false,null]`},
		// keys sort by UTF-16 units: the emoji's surrogates come before U+FB33
		{"UTF-16 order", `{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"\u00f6":4,"\u0080":5,"1":6,"\r":7}`,
			"{\"\\r\":7,\"1\":6,\"\u0080\":5,\"ö\":4,\"€\":3,\"😀\":2,\"\ufb33\":1}"},
		{"prefix before longer", `{"aa":1,"a":2,"":3}`, `{"":3,"a":2,"aa":1}`},
		{"no folding or normalising", `{"e\u0301":1,"\u00e9":2,"E":3,"e":4}`, "{\"E\":3,\"e\":4,\"e\u0301\":1,\"é\":2}"},
		// texts
		{"short escapes", `"\u0008\u0009\u000a\u000c\u000d\u0022\u005c"`, `"\b\t\n\f\r\"\\"`},
		{"other controls", `"\u0000\u000F\u001f"`, `"\u0000\u000f\u001f"`},
		{"no needless escapes", `"\u002f\/\u003c\u003e\u0026\u007f\u2028\u2029\u20ac"`, "\"//<>&\u007f\u2028\u2029€\""},
		{"surrogate pair", `"\ud83d\ude00"`, `"😀"`},
		// numbers, as ECMAScript writes them
		{"zero", `[0,-0,0.0,0e10]`, `[0,0,0,0]`},
		{"whole", `[1,1.0,10e-1,100,1e2]`, `[1,1,1,100,100]`},
		{"fractions", `[0.5,5e-1,0.50,-1.25]`, `[0.5,0.5,0.5,-1.25]`},
		{"large turn at 1e21", `[100000000000000000000,1e20,1e21,123456789e15]`, `[100000000000000000000,100000000000000000000,1e+21,1.23456789e+23]`},
		{"small turn at 1e-7", `[0.000001,1e-6,0.0000001,1.5e-7]`, `[0.000001,0.000001,1e-7,1.5e-7]`},
		{"shortest", `[0.1,0.30000000000000004,333333333.33333329,4.50,2e-3]`, `[0.1,0.30000000000000004,333333333.3333333,4.5,0.002]`},
		{"extremes", `[5e-324,1.7976931348623157e308,9007199254740992]`, `[5e-324,1.7976931348623157e+308,9007199254740992]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := []byte(tt.in)
			got, err := Canonical(in)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if string(in) != tt.in {
				t.Error("the input was changed")
			}
		})
	}
}

func TestCanonicalNumbers(t *testing.T) {
	t.Parallel()
	// What RFC 8785, appendix B gives for bit patterns at the edges.
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0", 0x8000000000000000: "0", 0x0000000000000001: "5e-324", 0x7fefffffffffffff: "1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992", 0x4430000000000000: "295147905179352830000", 0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23", 0x44b52d02c7e14af7: "1.0000000000000001e+23", 0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef50: "1e+21", 0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7", 0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332", 0x41b3de4355555555: "333333333.3333333", 0xbecbf647612f3696: "-0.0000033333333333333333",
	} {
		got, err := Canonical(fmt.Appendf(nil, "%.30e", math.Float64frombits(bits)))
		if err != nil || string(got) != want {
			t.Errorf("%016x: got %s %v, want %s", bits, got, err, want)
		}
	}
}

func TestDigest256(t *testing.T) {
	t.Parallel()
	d := Sum([]byte("abc"))
	const hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	if d.String() != hex || d.IsZero() || !(Digest256{}).IsZero() {
		t.Errorf("got %s", d)
	}
	if back, err := ParseDigest256(hex); err != nil || back != d {
		t.Errorf("got %s %v", back, err)
	}
	for _, bad := range []string{"", "x", hex[1:], hex + "0", strings.ToUpper(hex), hex[:63] + "g", " " + hex[1:]} {
		if _, err := ParseDigest256(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

// FuzzCanonical: canonicalising never panics, is idempotent, and keeps the meaning.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{}`, `{"b":1,"a":[1.50,"\ud83d\ude00",null]}`, `[1e21,-0,5e-324]`, `"\u0000"`, `{"a":1,"a":2}`, `{"a":`, "\xff", `"\ud800"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		once, err := Canonical(data)
		if err != nil {
			return
		}
		twice, err := Canonical(once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not idempotent: %s then %s %v", once, twice, err)
		}
		if !json.Valid(once) {
			t.Fatalf("%s is not JSON", once)
		}
		if scanJSON(data) == nil && scanJSON(once) != nil {
			t.Fatalf("%s is acceptable, its canonical form %s is not", data, once)
		}
	})
}
