#!/usr/bin/env bash
# Makes what compose.yaml needs and a repository must not hold: passwords and keys,
# in secrets/, and .env. What is there stays: running it twice changes nothing.
set -euo pipefail
cd "$(dirname "$0")"
umask 077
mkdir -p secrets

keep() { # NAME COMMAND...: the command's output becomes secrets/NAME, whole or not at all
	local name=$1; shift
	[ -s "secrets/$name" ] || { "$@" >"secrets/.$name" && mv "secrets/.$name" "secrets/$name"; }
}
keep database_password openssl rand -hex 24
keep database_url printf 'postgres://weir:%s@database/weir?sslmode=disable\n' "$(cat secrets/database_password)"
keep signing_key openssl genpkey -algorithm ed25519
keep signing_key.pub openssl pkey -in secrets/signing_key -pubout
keep receiver_secret printf 'whsec_%s\n' "$(openssl rand -base64 32)"

# weir runs as you: it refuses a signing key that others can read.
printf 'WEIR_USER=%s:%s\n' "$(id -u)" "$(id -g)" >.env
echo "Ready for: docker compose up --build -d"
