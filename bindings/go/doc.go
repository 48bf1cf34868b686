// Package rkv is RocketKV KV-cache compression for inference engines in Go: a typed layer over the C
// library librkv, which pkg-config finds (`rkv`).
//
// A [Cache] holds the compressed K and V of several sequences. The engine runs its own model and
// prefill attention; per layer it hands over the prompt once ([Cache.Prefill]), then asks for the
// attention output of each decode step ([Cache.Decode]):
//
//	cache, err := rkv.NewCache(rkv.Config{Layers: 30, QHeads: 9, KVHeads: 3, HeadDim: 64,
//		KVDType: rkv.F32, MaxPromptTokens: 4096, MaxNewTokens: 64, TokenBudget: 256})
//	defer cache.Close()
//	err = cache.OpenSequence(0, nil)
//	err = cache.Prefill(&rkv.PrefillArgs{Layer: layer, PromptTokens: s,
//		Q: rkv.Float32s(q, s, 9, 64), K: rkv.Float32s(k, s, 3, 64), V: rkv.Float32s(v, s, 3, 64)})
//	err = cache.Decode(&rkv.DecodeArgs{Layer: layer, Seq: []int32{0}, Positions: []int64{s},
//		Q: rkv.Float32s(q1, 1, 9, 64), K: rkv.Float32s(k1, 1, 3, 64), V: rkv.Float32s(v1, 1, 3, 64),
//		Out: rkv.Float32s(out, 1, 9, 64)})
//
// # Memory
//
// Arrays are plain slices, seen through a [Tensor]: any strides, never copied, pinned for the length
// of one call and free again when it returns. What leaves its slice is ErrBufferTooSmall before the
// library sees it. The argument structs lie in C memory that belongs to the cache; a call in the
// steady state allocates nothing. The cache's own memory is the library's, or the engine's by
// [NewCacheIn]. Memory outside Go is an address: [DeviceTensor], [DeviceRows].
//
// # Errors
//
// What the library refuses is an [*Error] with its text, and errors.Is finds the kind:
// errors.Is(err, rkv.ErrOutOfCapacity). A call that is refused has changed nothing. No call panics,
// whatever it is given.
//
// # Goroutines
//
// One call at a time per cache: a second one gets [ErrBadState]; [Cache.Stats] and
// [Cache.KeptPositions] may run side by side. Close while a call runs is ErrBadState too, and frees
// nothing; Close again is fine. A cache that is dropped without Close is closed by the garbage
// collector, some time.
//
// rkv.h says in full what each call does, with shapes and errors; names here are the header's.
package rkv
