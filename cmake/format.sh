#!/usr/bin/env bash
# cmake/format.sh          formats every C and C++ source of the repository
# cmake/format.sh --check  only names the files that would change; exits with 1 if there is any
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake/deps.sh format >/dev/null
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp')
if [ "${1:-}" != --check ]; then
  .deps/venv/bin/clang-format -i "${files[@]}"
  exit 0
fi
bad=0
for file in "${files[@]}"; do
  .deps/venv/bin/clang-format "$file" | cmp -s - "$file" || { echo "not formatted: $file"; bad=1; }
done
[ $bad = 0 ] || echo "cmake/format.sh formats them"
exit $bad
