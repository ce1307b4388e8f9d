#!/bin/sh
# Installs what the tests need from Debian and is not there yet: a PostgreSQL server, strace for faults inside system
# calls, a browser for the pages, Java for Spark, jq and curl for the examples.
set -eu

missing=""
command -v strace >/dev/null || missing="$missing strace"
command -v chromium >/dev/null || missing="$missing chromium"
command -v java >/dev/null || missing="$missing default-jre-headless"
command -v jq >/dev/null || missing="$missing jq"
command -v curl >/dev/null || missing="$missing curl"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$missing postgresql"
[ -z "$missing" ] && exit 0

run=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install as root:$missing" >&2; exit 1; }
  run=sudo
fi
$run apt-get update --quiet
# The packaged cluster is not wanted: the tests start a private one.
$run env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends $missing
