#!/usr/bin/env bash
# cmake/tidy.sh [FILE...]  clang-tidy over the library's sources (or the named ones); exits with 1
# if it finds anything. Uses the compile commands of the dev preset.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake/deps.sh core test tidy >/dev/null
[ -e build/dev/compile_commands.json ] || cmake --preset dev >/dev/null
files=("$@")
[ ${#files[@]} -gt 0 ] ||
  mapfile -t files < <(git ls-files 'core/*.cpp' 'capi/src/*.c' 'capi/src/*.cpp')
# Its counts of warnings in system headers, which it does not show, go.
printf '%s\0' "${files[@]}" |
  xargs -0 -n 1 -P 2 .deps/venv/bin/clang-tidy -p build/dev --quiet \
    2> >(grep -v 'warnings generated' >&2)
echo "clang-tidy: ${#files[@]} files"
