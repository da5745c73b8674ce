#!/usr/bin/env bash
# Makes sure that there is a Chromium for the browser tests. Installs Debian's
# package when it is missing and somebody with the right to do so asks.
set -euo pipefail

command -v "${WEIR_CHROMIUM:-chromium}" >/dev/null && exit 0
as_root=""
if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		as_root="sudo"
	else
		echo "The browser tests need Chromium. Run this once, then make again:" >&2
		echo "  sudo apt-get install -y --no-install-recommends chromium fonts-dejavu-core" >&2
		exit 1
	fi
fi
if ! command -v apt-get >/dev/null || ! grep -q '^ID=debian' /etc/os-release; then
	echo "The browser tests need Chromium. Install it with this system's package manager" >&2
	echo "and set WEIR_CHROMIUM to the program, unless it is found as chromium." >&2
	exit 1
fi
echo "Installing Chromium ..."
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
command -v chromium >/dev/null || { echo "the package is installed, but chromium is not where it is looked for" >&2; exit 1; }
