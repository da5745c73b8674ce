#!/usr/bin/env bash
# Makes sure that python3 (3.9 or newer), curl and openssl are on this machine, for the
# demo and the tests. Installs Debian's or Ubuntu's packages when they are missing.
set -euo pipefail

found() {
	command -v curl >/dev/null && command -v openssl >/dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null
}

found && exit 0
as_root=""
if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		as_root="sudo"
	else
		echo "The demo and the tests need python3 (3.9 or newer), curl and openssl. Run this once, then make again:" >&2
		echo "  sudo apt-get install -y --no-install-recommends python3 curl openssl" >&2
		exit 1
	fi
fi
if ! command -v apt-get >/dev/null; then
	echo "The demo and the tests need python3 (3.9 or newer), curl and openssl." >&2
	echo "Install them with this system's package manager." >&2
	exit 1
fi
echo "Installing python3, curl and openssl ..."
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 curl openssl >/dev/null
found || { echo "the packages are installed, but python3, curl or openssl is not there or too old" >&2; exit 1; }
