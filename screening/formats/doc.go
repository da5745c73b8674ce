// Package formats reads the files that teams have: today training examples, as
// chats or plain text, in JSON Lines and Parquet. It opens nothing itself and
// follows nothing that a file names.
package formats
