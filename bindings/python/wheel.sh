#!/usr/bin/env bash
# bindings/python/wheel.sh: builds the wheel, installs it into a new environment, where nothing can be
# compiled, and uses it there. Its last line is the golden runner's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake/deps.sh core python
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
.deps/venv/bin/pip --disable-pip-version-check wheel -q --no-deps -w "$dir" .
wheel=$(ls "$dir"/rkv-*.whl)
echo "${wheel##*/}"
.deps/venv/bin/python -m venv "$dir/venv"
"$dir/venv/bin/pip" --disable-pip-version-check install -q --only-binary :all: "$wheel"
golden=(tests/golden/*.txt)
# A user's machine: no compiler, no repository on the path.
clean() { (cd "$dir" && env -i PATH="$dir/venv/bin" HOME="$dir" "$dir/venv/bin/python" "$@"); }
clean -c '
import importlib.metadata, rkv
print("rkv", rkv.version(), rkv.plan(131072, head_dim=128, token_budget=256, max_new_tokens=256))
assert importlib.metadata.version("rkv") == rkv.version()'
clean "$PWD/bindings/python/tests/golden.py" "${golden[@]/#/$PWD/}"
