package review

import (
	"encoding/hex"
	"strings"
)

// NormalURI gives the form in which URIs are compared. Only what RFC 3986 calls
// the same, and what no store of data tells apart, is made the same: scheme and
// host in lower case, no default or empty port, no fragment, no user information of
// http and https, no "." and ".." in the path and no slash at its end, one slash or
// three where there is no host, escapes in capitals and exactly where needed. The
// case of a path, its query, http and https, and hosts with and without www stay
// apart. What is no URI with a scheme is only trimmed.
func NormalURI(text string) string {
	text = strings.TrimSpace(text)
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || !isScheme(scheme) {
		return text
	}
	scheme = strings.ToLower(scheme)
	rest, _, _ = strings.Cut(rest, "#")
	path, query, _ := strings.Cut(strings.TrimSpace(rest), "?")
	if query != "" {
		query = "?" + normalEscapes(query)
	}
	if !strings.HasPrefix(path, "/") { // urn:, doi:, hf:
		return scheme + ":" + strings.TrimRight(normalEscapes(path), "/") + query
	}
	authority := ""
	if after, found := strings.CutPrefix(path, "//"); found {
		authority, path = after, ""
		if i := strings.IndexByte(after, '/'); i >= 0 {
			authority, path = after[:i], after[i:]
		}
	}
	return scheme + "://" + normalAuthority(scheme, authority) + strings.TrimRight(withoutDots(normalEscapes(path)), "/") + query
}

func isScheme(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !('a' <= c && c <= 'z') && (i == 0 || !('0' <= s[i] && s[i] <= '9') && strings.IndexByte("+-.", s[i]) < 0) {
			return false
		}
	}
	return s != ""
}

func normalAuthority(scheme, authority string) string {
	user, host := "", authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		user, host = normalEscapes(authority[:i]), authority[i+1:]
	}
	if user != "" {
		user += "@"
	}
	web := scheme == "http" || scheme == "https"
	if web {
		user = ""
	}
	host = strings.ToLower(normalEscapes(strings.ToLower(host))) // escapes of a host are small: it has no case
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		name, port = host[:i], host[i+1:]
	}
	if strings.Trim(port, "0123456789") != "" || strings.Contains(name, ":") && !strings.HasSuffix(name, "]") {
		return user + host // whatever it is
	}
	name = strings.TrimRight(name, ".")
	switch {
	case scheme == "file" && name == "localhost":
		name = ""
	case web && port == map[string]string{"http": "80", "https": "443"}[scheme]:
		port = ""
	}
	if port != "" {
		port = ":" + port
	}
	return user + name + port
}

// withoutDots takes "." and ".." out of a path that is empty or begins with a slash.
func withoutDots(path string) string {
	var kept []string
	for i, s := range strings.Split(path, "/") {
		switch {
		case s == ".":
		case s != "..":
			kept = append(kept, s)
		case i > 0 && len(kept) > 1: // what is before the first slash stays
			kept = kept[:len(kept)-1]
		}
	}
	return strings.Join(kept, "/")
}

// normalEscapes writes percent escapes in capitals, leaves those out that stand for
// letters, digits and "-._~", and escapes what may not stand in a URI.
func normalEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c, escaped := s[i], false
		if c == '%' && i+2 < len(s) {
			if d, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				c, escaped = d[0], true
				i += 2
			}
		}
		if unreserved(c) || !escaped && strings.IndexByte(":/?#[]@!$&'()*+,;=", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
