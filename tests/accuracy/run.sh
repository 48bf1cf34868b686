#!/usr/bin/env bash
# tests/accuracy/run.sh          pass keys in 1,000 and 2,000 tokens: three minutes on two cores
# tests/accuracy/run.sh --full   up to 8,000 tokens, and KL on two texts; figures and pictures go
#                                to build/accuracy
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=.deps/quickstart-venv/bin/python
out=build/accuracy

case ${1:-} in
  '' | --full) ;;
  *) echo "accuracy: unknown option '$1'" >&2; exit 2 ;;
esac
examples/quickstart.sh --help >/dev/null # the environment: librkv, the model, its packages
if [ "${1:-}" = --full ]; then
  code=0
  "$python" tests/accuracy/passkey.py --full --json $out/passkey.json || code=1
  "$python" tests/accuracy/kl.py --json $out/kl.json || code=1
  "$python" tests/accuracy/plots.py $out/passkey.json $out/kl.json $out
  exit $code
fi
exec "$python" tests/accuracy/passkey.py --json $out/passkey-short.json
