// Command rkv-golden runs golden-vector files over the binding: rkv-golden FILE...
package main

import (
	"fmt"
	"os"

	"github.com/librkv/librkv/bindings/go/internal/golden"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Println("usage: rkv-golden FILE...")
		os.Exit(1)
	}
	result, err := golden.Run(os.Args[1:]...)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(result)
}
