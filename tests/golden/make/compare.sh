#!/usr/bin/env bash
# compare.sh MAKE_GOLDEN FOLDER: the golden files in FOLDER are what make_golden writes, byte for byte.
set -euo pipefail
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
"$1" "$fresh"
mkdir "$fresh/committed"
cp "$2"/*.txt "$fresh/committed/"
mkdir "$fresh/made"
mv "$fresh"/*.txt "$fresh/made/"
if ! diff -r "$fresh/committed" "$fresh/made" >"$fresh/difference"; then
  head -n 40 "$fresh/difference"
  exit 1
fi
