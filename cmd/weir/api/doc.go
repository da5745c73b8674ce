// Package api is weir's HTTP interface: echo routes on one screen, handlers that
// decode, validate, call the desk and encode, and one table that turns errors
// into problem+json. It knows no SQL and decides nothing.
package api
