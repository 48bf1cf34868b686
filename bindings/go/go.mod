module github.com/librkv/librkv/bindings/go

go 1.21
