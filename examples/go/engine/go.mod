module github.com/librkv/librkv/examples/go/engine

go 1.21

require github.com/librkv/librkv/bindings/go v0.0.0

require gonum.org/v1/gonum v0.14.0

replace github.com/librkv/librkv/bindings/go => ../../../bindings/go
