// Package certificate is the TLS side of a listener whose certificate is in files.
//
// The files are read again at each handshake, so that a certificate that was renewed
// or a client CA that was taken out needs no restart. While they cannot be read, as
// in the middle of a renewal, the last good ones hold.
package certificate
