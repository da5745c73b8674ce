#!/usr/bin/env bash
# Makes sure that the Postgres server programs are on this machine. Installs
# Debian's or Ubuntu's package when they are missing; starts nothing.
set -euo pipefail

found() {
	[ -n "${WEIR_PG_BIN:-}" ] && [ -x "$WEIR_PG_BIN/initdb" ] && return 0
	command -v pg_config >/dev/null && [ -x "$(pg_config --bindir)/initdb" ] && return 0
	compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null && return 0
	command -v initdb >/dev/null
}

if [ -n "${WEIR_TEST_DSN:-}" ] || found; then
	exit 0
fi
as_root=""
if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		as_root="sudo"
	else
		echo "weir needs the Postgres server programs. Run this once, then make again:" >&2
		echo "  sudo apt-get install -y --no-install-recommends postgresql" >&2
		exit 1
	fi
fi
if ! command -v apt-get >/dev/null; then
	echo "weir needs the Postgres server programs (initdb, postgres), version 14 or newer." >&2
	echo "Install them with this system's package manager, or set WEIR_PG_BIN to their directory." >&2
	exit 1
fi
echo "Installing the Postgres server programs ..."
# Only the programs: no cluster is made and no server started.
$as_root mkdir -p /etc/postgresql-common
if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
	echo "create_main_cluster = false" | $as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql >/dev/null
found || { echo "the package is installed, but initdb is not where it is looked for" >&2; exit 1; }
