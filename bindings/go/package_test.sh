#!/usr/bin/env bash
# bindings/go/package_test.sh PREFIX: the module as another project gets it, packed and taken through a
# module proxy, built against PREFIX by pkg-config alone; runs the README's program.
set -euo pipefail
prefix=$(cd "${1:?usage: package_test.sh PREFIX}" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
version=v$(pkg-config --modversion rkv)
go run ./internal/pack "$folder/proxy" "$version"
mkdir "$folder/engine"
awk '/^```go$/ {inside = 1; next} /^```$/ {inside = 0} inside' README.md >"$folder/engine/main.go"
cd "$folder/engine"
export GOPROXY=file://$folder/proxy GOSUMDB=off GOMODCACHE=$folder/modules GOFLAGS=-buildvcs=false
unformatted=$(gofmt -l main.go)
[ -z "$unformatted" ] || { echo "README.md: its program is not as gofmt has it"; exit 1; }
go mod init engine
go get "github.com/librkv/librkv/bindings/go@$version"
go vet .
go run . | tee output
grep -qE '^kept [0-9]+ of 2000 <nil>$' output
