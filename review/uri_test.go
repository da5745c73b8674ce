package review_test

import (
	"strings"
	"testing"

	"weir/review"
	"weir/screening"
)

func TestNormalURI(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"https://data.example/a", "HTTPS://Data.Example/a", "https://data.example:443/a/", " https://data.example/a#part ", "https://user:pw@data.example/a",
			"https://data.example./a", "https://data.example/%61", "https://data.example/a///", "https://data.example:/a", "https://@data.example/a",
			"https://data.example/./a", "https://data.example/b/../a", "https://data.example/../a/.", "https://data.example/%2E%2e/a", "https://data.example/a?"},
		{"http://data.example", "http://data.example/", "http://data.example:80", "http://data.example/.."},
		{"https://data.example/%2Fa%3C", "https://data.example/%2fa%3c", "https://data.example/%2fa<"},
		{"https://data.example/%2F%C3%A9", "https://data.example/%2Fé", "https://data.example/%2f%c3%a9"},
		{"https://data.example/a?b=%2F", "https://data.example/a/?b=%2f#x"},
		{"https://data.example/a?q=%C3%A9%20", "https://data.example/a?q=é%20", "https://data.example/a?q=%c3%A9%20"},
		{"https://data.example/100%25", "https://data.example/100%"},
		{"https://[::1]:8443/a", "https://[::1]:8443/a/"},
		{"https://[::1]/a", "https://[::1]:443/a"},
		{"s3://bucket/Key", "S3://Bucket/Key/"},
		{"doi:10.1/ABC", "DOI:10.1/ABC", "doi:10.1/ABC#x", "doi:10.1/%41BC"},
		{"hf:org/d", "hf:org/d/", "HF:org/d//"},
		{"org/data", " org/data\n"},
		{"file:///srv/data", "FILE:///srv/data/", "file:/srv/data", "file://localhost/srv/data"},
		{"hdfs:///srv/data", "hdfs:/srv/data"},
	} {
		for _, uri := range same {
			if got := review.NormalURI(uri); got != same[0] {
				t.Errorf("%q gives %q, want %q", uri, got, same[0])
			}
		}
	}
	apart := []string{"https://data.example/a", "http://data.example/a", "https://www.data.example/a", "https://data.example/A", "https://data.example/a?b",
		"https://data.example/a?B", "https://data.example:8443/a", "https://data.example/a%2Fb", "https://data.example/a/b", "s3://data.example/a",
		"s3://user@data.example/a", "data.example/a", "Data.example/a", "doi:10.1/abc", "doi:10.1/ABC", "https://data.example/a/..a", "https://data.example/%2561",
		"https://data.example/a//b", "file://host/a", "https://data.example/a%2C", "https://data.example/a,"}
	seen := map[review.Point]string{}
	for _, uri := range apart {
		p := review.URIPoint(uri)
		if other, ok := seen[p]; ok {
			t.Errorf("%s is taken for %s", uri, other)
		}
		seen[p] = uri
	}
}

// A name that is a digest, or ends with one, is recalled by the digest.
func TestDigestsInNames(t *testing.T) {
	t.Parallel()
	sum := screening.Sum([]byte("x"))
	x := sum.String()
	for _, text := range []string{"sha256:" + x, "SHA256:" + strings.ToUpper(x), x, " " + x + "/", "sha-256:" + x, "sha256:" + x + "?y", "sha256%3A" + x,
		"urn:sha256:" + x, "URN:SHA256:" + x, "sha256://" + x, "SHA256://" + strings.ToUpper(x) + "/",
		"registry/image@sha256:" + x, "registry:5000/image@sha256:" + x, "registry/image:tag@sha256:" + x, "oci://registry/image@sha256:" + x,
		"registry/image@sha256:" + x + "/", "registry/image@sha256:" + x + "?y", "registry/image@sha256:" + x + "#z", "registry/image@sha256%3a" + x,
		"oci://registry/image@sha256%3A" + x + "/?y", "https://registry/v2/image/blobs/sha256:" + x, "registry/image%40sha256%3A" + x} {
		if review.URIPoint(text) != review.SHA256Point(sum) {
			t.Errorf("%s is not the digest", text)
		}
	}
	for _, text := range []string{"registry/image:" + x, "s3://b/" + x, "registry/image@" + x, "registry/image@sha256:" + x[1:], "md5:" + x[:32], "registry/sha256:" + x + "/layer"} {
		if review.URIPoint(text).Kind() != review.PointURI {
			t.Errorf("%s is taken for a digest", text)
		}
	}
}

// Normal is normal already, whatever it was made of.
func FuzzNormalURI(f *testing.F) {
	for _, seed := range []string{"https://A.example:443/%7e/?q#f", "s3://b/k//", "urn:x:y", "%", "://", "a:b#c", "http://[::1]:80/", "x://h.:80/", "HTTP:a", "http:///a",
		"x:/a/..//b", "x://h::", "http://h:80:80", "x://h:.", "x://a@@h", "x: //h", "x:a ?b ", "http://É%C3%89.:/", "x:%%41", "x://h/a/./../b/..", "x:?q", "x:/", "\xff:\xff", "x://\xff/\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		once := review.NormalURI(uri)
		if again := review.NormalURI(once); again != once {
			t.Errorf("%q gives %q, and that %q", uri, once, again)
		}
	})
}
