module github.com/librkv/librkv/bindings/go/purego

go 1.21

require github.com/ebitengine/purego v0.8.4
