#!/usr/bin/env bash
# The whole path once, with real parts: a private Postgres, the gate, a receiver
# that verifies signatures, three specs, a reviewer's vote. Exits 0 only if all
# of it really happened. Everything it starts ends with it.
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(mktemp -d "${TMPDIR:-/var/tmp}/weir-demo.XXXXXX")
chmod 711 "$work" # the database may run as another user and has to reach its directory
free_port() { # below the range from which the system gives ports to clients
	local p
	while :; do
		p=$((20000 + RANDOM % 12000))
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo "$p"; return; }
	done
}
port=$(free_port)
hook_port=$(free_port)
while [ "$hook_port" = "$port" ]; do hook_port=$(free_port); done
export WEIR_SERVER="http://127.0.0.1:$port"
pids=()

finish() {
	status=$?
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
	if [ $status -ne 0 ]; then
		echo
		echo "The demo failed. The end of the gate's log:"
		tail -n 5 "$work/gate.log" 2>/dev/null || true
	fi
	rm -rf "$work"
	exit $status
}
trap finish EXIT

step() { printf '\n== %s\n' "$*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
until_true() { # seconds, command...
	local left=$(($1 * 10)); shift
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || return 1
		sleep 0.1
	done
}
gate() { # spec → HTTP status of gate/check
	curl -s -o "$work/answer" -w '%{http_code}' -H "Authorization: Bearer $WEIR_KEY" \
		-H 'Content-Type: application/yaml' --data-binary "@$1" "$WEIR_SERVER/v1/gate/check"
}
field() { # name → its first value in the JSON on stdin
	grep -o "\"$1\": *[^,}]*" | head -n 1 | sed 's/^[^:]*: *"\{0,1\}//; s/"\{0,1\} *$//'
}

step "1. Start a receiver of webhooks and the gate with a private Postgres"
secret="whsec_$(head -c 32 /dev/urandom | base64 | tr -d '\n')"
RECEIVER_SECRET=$secret bin/receiver -listen "127.0.0.1:$hook_port" >"$work/receiver.log" 2>&1 &
pids+=($!)
mkdir "$work/config"
cp deploy/example/people.yaml "$work/config/"
sed "s/127.0.0.1:8099/127.0.0.1:$hook_port/" deploy/example/policies.yaml >"$work/config/policies.yaml"
started=$(date +%s%N)
WEIR_EXAMPLE_SECRET=$secret bin/weir serve --listen "127.0.0.1:$port" --config "$work/config" \
	--state-dir "$work/state" >/dev/null 2>"$work/gate.log" &
pids+=($!)
until_true 30 curl -sf "$WEIR_SERVER/readyz" || fail "the gate did not get ready"
until_true 10 curl -sf "http://127.0.0.1:$hook_port/livez" || fail "the receiver did not start"
echo "ready after $((($(date +%s%N) - started) / 1000000)) ms, database included"

step "2. Make keys: one for a pipeline, one for the reviewer bo"
WEIR_KEY=$(bin/weir key create --state-dir "$work/state" --for airflow-prod --scopes submit)
export WEIR_KEY
reviewer=$(bin/weir key create --state-dir "$work/state" --for bo --scopes review)
echo "made two keys (only their digests are kept)"

step "3. A spec that is admitted"
bin/weir check testdata/specs/admitted.yaml || fail "expected exit code 0, got $?"
[ "$(gate testdata/specs/admitted.yaml)" = 200 ] || fail "the gate is not open for the admitted bytes"
echo "  gate/check for these bytes: 200"

step "4. A spec that is blocked"
code=0; bin/weir check testdata/specs/blocked.yaml || code=$?
[ $code = 10 ] || fail "expected exit code 10, got $code"
[ "$(gate testdata/specs/blocked.yaml)" = 403 ] || fail "the gate does not refuse the blocked bytes"
echo "  gate/check for these bytes: 403"

step "5. A spec that people have to decide"
code=0; bin/weir check testdata/specs/escalated.yaml || code=$?
[ $code = 11 ] || fail "expected exit code 11, got $code"
before=$(gate testdata/specs/escalated.yaml)
[ "$before" = 409 ] || fail "the gate answers $before for bytes under review, expected 409"
echo "  gate/check for these bytes, before the review: 409"

step "6. The webhook arrives and its signature verifies"
until_true 10 grep -q '^VERIFIED review.opened' "$work/receiver.log" || fail "no verified webhook arrived"
grep '^VERIFIED review.opened' "$work/receiver.log" | fold -w 76 | sed 's/^/  /'
! grep -q '^REFUSED' "$work/receiver.log" || fail "a signature did not verify"

step "7. The reviewer bo reads the review and votes to admit"
review=$(curl -sf -H "Authorization: Bearer $reviewer" "$WEIR_SERVER/v1/reviews")
id=$(field id <<<"$review")
sum=$(field spec_sha256 <<<"$review")
terms=$(grep -o '"terms":\[[^]]*\]' <<<"$review" | sed 's/"terms":\[//; s/\]//' | paste -sd, -)
curl -sf -H "Authorization: Bearer $reviewer" -H 'Content-Type: application/json' \
	-d "{\"expected_version\": 1, \"spec_sha256\": \"$sum\", \"vote\": \"admit\", \"reason\": \"Consent forms seen in the archive; the parent is public.\", \"terms\": [$terms]}" \
	"$WEIR_SERVER/v1/reviews/$id/votes" >"$work/voted" || fail "the vote was not accepted"
[ "$(field state <"$work/voted")" = decided ] || fail "the review is not decided"
echo "  decided: $(field outcome <"$work/voted")"

step "8. The gate opens for exactly these bytes"
[ "$(gate testdata/specs/escalated.yaml)" = 200 ] || fail "the gate is still closed"
echo "  gate/check for these bytes, after the review: 200"
{ cat testdata/specs/escalated.yaml; echo "# one comment more"; } >"$work/other.yaml"
[ "$(gate "$work/other.yaml")" = 404 ] || fail "the gate is open for other bytes"
echo "  gate/check for the same spec with one comment more: 404"
until_true 10 grep -q '^VERIFIED review.decided' "$work/receiver.log" || fail "nobody was told of the decision"
echo "  the receiver was told: review.decided"

step "9. Stop"
kill -TERM "${pids[1]}"
wait "${pids[1]}" || fail "the gate did not stop cleanly"
pids=("${pids[0]}")
echo "the gate and its database are stopped"
printf '\nAll of it happened.\n'
