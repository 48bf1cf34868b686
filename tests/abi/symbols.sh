#!/usr/bin/env bash
# symbols.sh NM LIBRARY LIST HEADER: the list, the library's dynamic symbols and the functions that
# the header declares are the same names.
set -euo pipefail
nm=$1 library=$2 list=$3 header=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

grep -vE '^(#|$)' "$list" | sort >"$dir/list"
"$nm" -D --defined-only "$library" | awk '{print $NF}' | sort >"$dir/library"
# The header without comments, on one line; a function is a name before a parenthesis.
tr '\n' ' ' <"$header" | sed 's:/\*:\n/*:g; s:\*/:*/\n:g' | grep -v '^/\*' |
  grep -oE 'RKV_API [^;]*;' | grep -oE '\brkv_[a-z0-9_]+ *\(' | tr -d ' (' | sort >"$dir/header"

[ -s "$dir/list" ]
for other in library header; do
  if ! diff "$dir/list" "$dir/$other" >"$dir/diff"; then
    echo "librkv.symbols (<) and the $other (>) differ:"
    cat "$dir/diff"
    exit 1
  fi
done
[ "$(uniq -d "$dir/list")" = "" ] || { echo "names twice in the list"; exit 1; }
echo "$(wc -l <"$dir/list") names agree"
