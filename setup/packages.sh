#!/bin/sh
# Installs the Debian packages that the tests need and that are missing: a browser for the
# workbench's pages, a Java runtime for Spark. Nothing else of keyhole needs them.
set -eu

missing=""
command -v chromium >/dev/null 2>&1 || missing="$missing chromium"
command -v java >/dev/null 2>&1 || missing="$missing default-jre-headless"
[ -z "$missing" ] && exit 0

as_root=""
[ "$(id -u)" = 0 ] || as_root="sudo -n"
if ! command -v apt-get >/dev/null 2>&1 || { [ -n "$as_root" ] && ! $as_root true 2>/dev/null; }; then
    echo "The tests need these programs, please install them:$missing" >&2
    exit 1
fi
echo "Installing (once):$missing ..."
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
{ $as_root apt-get -q update && $as_root apt-get -q install -y --no-install-recommends $missing; } \
    >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
rm -f "$log"
