#!/bin/sh
# gate.sh SPEC: exits 0 only if exactly these bytes may train now.
# 10 blocked, 11 waits for people, 12 ended, 2 refused, 20 no answer: closed.
# In report mode it warns and exits 0, as the gate asks for.
# Needs curl. Reads WEIR_SERVER, WEIR_KEY and WEIR_TIMEOUT (seconds, default 10).
set -u
closed() { echo "weir gate: closed: $2" >&2; exit "$1"; }

spec=${1-}
[ -f "$spec" ] || closed 2 "there is no spec file '$spec'"
[ -n "${WEIR_KEY-}" ] || closed 2 "WEIR_KEY is not set"
sum=$(sha256sum <"$spec") || closed 20 "sha256sum failed"
sum=${sum%% *}

# Screens the spec, or finds the answer it has, and asks the gate: one request.
# The key goes through standard input, where no list of processes shows it.
answer=$(printf 'header = "Authorization: Bearer %s"\n' "$WEIR_KEY" |
	curl -q -sS -K - -m "${WEIR_TIMEOUT:-10}" -w '\n%{http_code}' \
		-H 'Content-Type: application/yaml' --data-binary "@$spec" \
		"${WEIR_SERVER:-http://127.0.0.1:8080}/v1/screenings?gate=true" 2>&1) ||
	closed 20 "$(echo "$answer" | grep -m 1 '^curl: ')"

body=${answer%?????} status=${answer##*[!0-9]}
case $status$body in
200*'"gate":"admitted"'*"\"spec_sha256\":\"$sum\""*'}') exit 0 ;;
200*'"gate":"'*'"would":"block"'*"\"spec_sha256\":\"$sum\""*'}' | 200*'"gate":"'*'"would":"escalate"'*"\"spec_sha256\":\"$sum\""*'}')
	echo "weir gate: report mode lets this run pass; weir explain says what would stop it" >&2 ;;
403*'"gate":"blocked"'*) closed 10 "the spec is blocked; weir explain says why" ;;
409*'"gate":"pending"'*) closed 11 "people have to decide; ask again later" ;;
409*'"gate":"'* | 409*'problem:review-expired"'*) closed 12 "the review or the admission ended" ;;
429*urn:weir:problem:* | 409*'problem:in-flight"'*) closed 20 "the gate is busy" ;;
4*urn:weir:problem:*) closed 2 "$status $(echo "$body" | sed 's/.*"title":"\([^"]*\)".*/\1/')" ;;
*) closed 20 "status $status, not a whole answer of a weir" ;;
esac
