#!/usr/bin/env bash
# bindings/go/purego/test.sh PREFIX: the library of PREFIX loaded without cgo, held against cgo's bits.
set -euo pipefail
prefix=$(cd "${1:?usage: test.sh PREFIX}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd .. && go run ./internal/bits) >"$folder/bits"
export CGO_ENABLED=0 RKV_CGO_BITS=$folder/bits RKV_LIBRARY=$prefix/lib/librkv.so
go vet ./...
go test -count=1 -v ./...
