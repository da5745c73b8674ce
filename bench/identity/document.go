package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// The document that defines the reference rules is a Python module that was stored as one line: every line break, with
// the indent behind it, became one space. It is not part of this repository. What is here says where to put the line
// breaks back, and knows the result by its digest.
const (
	documentFile   = "003_3cc4778558f36cd2.txt"
	documentSize   = 10100
	documentDigest = "ae3fc3550b3779c6d3e5da426b2bdbab62281e6a033b88d4de3aaf1d3c1e1dae"
	restoredDigest = "c22eb01e6320fbc947185db64b4cb61fdc094f60ce2245ea1bca1fcbdfadb4fc"
)

// lineBreaks are the places where a line break and an indent replace the one space at an offset. They are those that
// Python needs: around statements and comments, not inside expressions and documentation.
var lineBreaks = []lineBreak{
	{506, 0}, {541, 0}, {556, 0}, {568, 0}, {578, 0}, {612, 0}, {642, 0}, {723, 0}, {775, 0}, {822, 0}, {830, 0},
	{857, 4}, {879, 4}, {919, 4}, {953, 0}, {1034, 0}, {1098, 0}, {1382, 0}, {1459, 0}, {1535, 0}, {1601, 0},
	{1647, 4}, {1717, 4}, {1755, 4}, {1794, 4}, {1826, 4}, {1853, 4}, {1917, 4}, {1981, 4}, {2007, 4}, {2055, 4},
	{2090, 0}, {2093, 0}, {2166, 0}, {2244, 0}, {2289, 0}, {2291, 0}, {2369, 0}, {2437, 0}, {2509, 0}, {2581, 0},
	{2651, 0}, {2683, 0}, {2726, 4}, {2745, 4}, {3028, 4}, {3054, 4}, {3194, 4}, {3246, 4}, {3505, 0}, {3508, 0},
	{3587, 0}, {3662, 0}, {3735, 0}, {3783, 0}, {3971, 0}, {4019, 0}, {4095, 0}, {4166, 0}, {4207, 0}, {4241, 4},
	{4375, 4}, {4855, 0}, {4951, 0}, {4985, 4}, {5215, 4}, {5255, 4}, {5354, 4}, {5420, 4}, {5472, 4}, {5493, 4},
	{5564, 0}, {5597, 4}, {5853, 4}, {5880, 8}, {5891, 4}, {5931, 8}, {5991, 12}, {6000, 8}, {6032, 8},
	{6065, 12}, {6082, 8}, {6133, 8}, {6174, 12}, {6197, 8}, {6250, 8}, {6351, 12}, {6373, 4}, {6384, 0},
	{6430, 4}, {6468, 4}, {6546, 4}, {6608, 8}, {6620, 4}, {6659, 4}, {6699, 4}, {6751, 4}, {6802, 4}, {6875, 4},
	{6902, 8}, {6914, 4}, {6989, 4}, {7064, 4}, {7125, 4}, {7171, 4}, {7204, 8}, {7240, 12}, {7249, 8},
	{7271, 8}, {7283, 8}, {7317, 8}, {7349, 8}, {7399, 12}, {7411, 8}, {7463, 12}, {7475, 4}, {7488, 0},
	{7569, 4}, {7824, 4}, {7883, 0}, {7919, 0}, {7950, 4}, {8418, 4}, {8449, 4}, {8472, 4}, {8489, 4}, {8553, 4},
	{8563, 4}, {8591, 8}, {8637, 4}, {8677, 8}, {8840, 0}, {9089, 4}, {9619, 4}, {9672, 8}, {9714, 4}, {9783, 8},
	{9825, 4}, {9869, 8}, {9908, 4}, {9914, 8}, {9947, 4},
}

// lineBreak is one entry: a place in bytes of the stored document, and a number of spaces.
type lineBreak struct{ offset, indent int }

// readDocument reads the stored document from a folder and restores it.
func readDocument(dir string) ([]byte, error) {
	stored, err := os.ReadFile(filepath.Join(dir, documentFile))
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	return restore(stored)
}

// restore gives the document with its line breaks. It accepts no other text, and gives no other.
func restore(stored []byte) ([]byte, error) {
	if digest(stored) != documentDigest {
		return nil, fmt.Errorf("%s is not the document: its SHA-256 is %s, not %s", documentFile, digest(stored), documentDigest)
	}
	var b bytes.Buffer
	at := 0
	for _, br := range lineBreaks {
		if stored[br.offset] != ' ' {
			return nil, fmt.Errorf("line break at offset %d: there is no space", br.offset)
		}
		b.Write(stored[at:br.offset])
		b.WriteByte('\n')
		b.Write(bytes.Repeat([]byte(" "), br.indent))
		at = br.offset + 1
	}
	b.Write(stored[at:])
	if digest(b.Bytes()) != restoredDigest {
		return nil, fmt.Errorf("the restored document's SHA-256 is %s, not %s", digest(b.Bytes()), restoredDigest)
	}
	return b.Bytes(), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
