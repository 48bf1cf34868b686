#!/usr/bin/env bash
# cmake/format.sh          formats every C and C++ source of the repository
# cmake/format.sh --check  only says which lines would change; exits with 1 if any
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cmake/deps.sh clang >/dev/null
mode=(-i)
[ "${1:-}" != --check ] || mode=(--dry-run --Werror)
mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cpp' '*.hpp')
.deps/venv/bin/clang-format "${mode[@]}" "${files[@]}"
echo "clang-format: ${#files[@]} files"
