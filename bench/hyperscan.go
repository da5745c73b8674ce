//go:build cgo && linux

package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// What is used of Hyperscan's stable C interface (hs.h), declared here so that only the shared library is needed, and
// only when the comparison runs.
typedef struct hs_database hs_database_t;
typedef struct hs_scratch hs_scratch_t;
typedef struct { char *message; int expression; } hs_compile_error_t;
typedef int (*match_fn)(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *ctx);

static int (*compile_fn)(const char *const *, const unsigned *, const unsigned *, const size_t *, unsigned, unsigned, const void *, hs_database_t **, hs_compile_error_t **);
static int (*alloc_fn)(const hs_database_t *, hs_scratch_t **);
static int (*scan_fn)(const hs_database_t *, const char *, unsigned, unsigned, hs_scratch_t *, match_fn, void *);
static int (*size_fn)(const hs_database_t *, size_t *);
static const char *(*version_fn)(void);

static const char *open_library(void) {
	void *lib = dlopen("libhs.so.5", RTLD_NOW);
	if (!lib) return NULL;
	compile_fn = dlsym(lib, "hs_compile_lit_multi");
	alloc_fn = dlsym(lib, "hs_alloc_scratch");
	scan_fn = dlsym(lib, "hs_scan");
	size_fn = dlsym(lib, "hs_database_size");
	version_fn = dlsym(lib, "hs_version");
	if (!compile_fn || !alloc_fn || !scan_fn || !size_fn || !version_fn) return NULL;
	return version_fn();
}

static int compile_literals(const char *const *texts, const unsigned *flags, const unsigned *ids, const size_t *lens, unsigned n,
		hs_database_t **db, hs_scratch_t **scratch, size_t *size) {
	hs_compile_error_t *err = NULL;
	int rc = compile_fn(texts, flags, ids, lens, n, 1, NULL, db, &err); // 1: block mode
	if (rc == 0) rc = alloc_fn(*db, scratch);
	if (rc == 0) rc = size_fn(*db, size);
	return rc;
}

// Hits are kept in C, as a caller would who wants speed; a callback into Go for each would cost more than the scan.
typedef struct { unsigned id; unsigned end; } found_t;
typedef struct { found_t *items; size_t n, room; } hits_t;

static int keep(unsigned id, unsigned long long from, unsigned long long to, unsigned flags, void *ctx) {
	hits_t *h = ctx;
	if (h->n == h->room) {
		h->room = h->room ? 2 * h->room : 1024;
		h->items = realloc(h->items, h->room * sizeof(found_t));
	}
	h->items[h->n].id = id;
	h->items[h->n++].end = (unsigned)to;
	return 0;
}

static int scan(const hs_database_t *db, hs_scratch_t *scratch, const char *text, unsigned len, hits_t *hits) {
	hits->n = 0;
	return scan_fn(db, text, len, 0, scratch, keep, hits);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// hyperscan is Intel's Hyperscan, compiled for literals in any case.
type hyperscan struct {
	db      *C.hs_database_t
	scratch *C.hs_scratch_t
	hits    *C.hits_t
	lens    []int
	size    int // bytes of the database
}

// hyperscanVersion says which library is there, "" if none is.
func hyperscanVersion() string {
	if v := C.open_library(); v != nil {
		return C.GoString(v)
	}
	return ""
}

func newHyperscan(phrases []string) (*hyperscan, error) {
	if hyperscanVersion() == "" {
		return nil, errors.New("libhs.so.5 is not installed")
	}
	n := len(phrases)
	texts := unsafe.Slice((**C.char)(C.malloc(C.size_t(n)*C.size_t(unsafe.Sizeof(uintptr(0))))), n)
	flags, ids, lens := make([]C.uint, n), make([]C.uint, n), make([]C.size_t, n)
	h := &hyperscan{lens: make([]int, n), hits: (*C.hits_t)(C.calloc(1, C.sizeof_hits_t))}
	for i, p := range phrases {
		texts[i] = C.CString(p)
		defer C.free(unsafe.Pointer(texts[i]))
		flags[i], ids[i], lens[i], h.lens[i] = 1, C.uint(i), C.size_t(len(p)), len(p) // 1: any case
	}
	defer C.free(unsafe.Pointer(&texts[0]))
	var size C.size_t
	if rc := C.compile_literals(&texts[0], &flags[0], &ids[0], &lens[0], C.uint(n), &h.db, &h.scratch, &size); rc != 0 {
		return nil, fmt.Errorf("hyperscan: error %d", rc)
	}
	h.size = int(size)
	return h, nil
}

// scan searches a text and gives the number of hits, which stay with the matcher.
func (h *hyperscan) scan(text string) int {
	C.scan(h.db, h.scratch, (*C.char)(unsafe.Pointer(unsafe.StringData(text))), C.uint(len(text)), h.hits)
	return int(h.hits.n)
}

func (h *hyperscan) find(text string) []hit {
	n := h.scan(text)
	hits := make([]hit, n)
	for i, f := range unsafe.Slice(h.hits.items, n) {
		hits[i] = hit{int(f.id), int(f.end) - h.lens[f.id], int(f.end)}
	}
	return hits
}
