#!/usr/bin/env bash
# abidiff.sh LIBRARY HEADERS BASELINE: the library's ABI is the committed baseline's.
# abidiff.sh --update LIBRARY HEADERS BASELINE: writes the baseline anew (CONTRIBUTING.md says when).
set -euo pipefail
update=0
if [ "$1" = --update ]; then
  update=1
  shift
fi
library=$1 headers=$2 baseline=$3
command -v abidw >/dev/null && command -v abidiff >/dev/null ||
  { echo "abidw and abidiff are missing: cmake/deps.sh test installs them"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# The types of the public header alone, without folders and lines, so that moving code or changing
# what is behind the API changes nothing. (abidiff given headers and a file as its first side would
# take every type of that side for a private one, and say nothing of a changed struct.)
abidw --headers-dir "$headers" --drop-private-types --no-corpus-path --no-comp-dir-path \
  --no-show-locs --exported-interfaces-only "$library" |
  sed "s: path='[^']*/: path=':" >"$dir/now.abi"
for type in rkv_cache_config rkv_decode_args rkv_prefill_args rkv_sequence_stats rkv_tensor; do
  grep -q "class-decl name='$type' size-in-bits" "$dir/now.abi" ||
    { echo "$type is not in the debug information of $library"; exit 1; }
done

if [ $update = 1 ]; then
  cp "$dir/now.abi" "$baseline"
  exit 0
fi
code=0
abidiff "$baseline" "$dir/now.abi" || code=$?
[ $code = 0 ] || { echo "abidiff ended with $code: the ABI differs from $baseline"; exit 1; }
echo "the ABI is that of the baseline"
