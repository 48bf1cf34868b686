package rkv

// #include "call.h"
import "C"

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"
)

// shape is what tells how long a caller's arrays must be.
type shape struct{ qHeads, kvHeads int32 }

// Cache is the compressed K and V of several sequences. One call at a time, as the library has it: a
// second goroutine gets ErrBadState and changes nothing; Stats and KeptPositions may run side by side.
// Different caches are independent. A copy of a Cache is refused by every call.
type Cache struct {
	config Config
	memory Memory
	shape  shape
	stream atomic.Uintptr
	self   uintptr // where NewCache put it; no pointer, which would keep a forgotten cache alive

	mu      sync.Mutex
	handle  *C.rkv_cache
	running int     // calls inside the library; their C memory must stay
	idle    []*call // arguments of finished calls, used again
	buffers runtime.Pinner
}

// Buffers are the engine's memory for a cache, pinned until Close. Their contents need not be cleared.
// Caches whose calls never overlap may share a Workspace; a Storage is one cache's alone, which nothing
// checks.
type Buffers struct {
	Storage, Workspace []byte

	DeviceStorage, DeviceWorkspace           uintptr // device memory in place of the slices
	DeviceStorageBytes, DeviceWorkspaceBytes int64
}

// NewCache makes a cache in memory of the library's own. Close frees it.
func NewCache(config Config) (*Cache, error) { return newCache(config, nil) }

// NewCacheIn makes a cache in the engine's memory: CacheMemory says how much, Memory.NewBuffers
// allocates it. The buffers belong to the cache until Close.
func NewCacheIn(config Config, buffers Buffers) (*Cache, error) { return newCache(config, &buffers) }

func newCache(config Config, buffers *Buffers) (*Cache, error) {
	s, err := newSetup(&config)
	if err != nil {
		return nil, err
	}
	defer s.free()
	memory, err := s.readMemory()
	if err != nil {
		return nil, err
	}
	c := &Cache{config: config, memory: memory, shape: shape{config.QHeads, config.KVHeads}}
	c.config.DenseLayers = append([]int32(nil), config.DenseLayers...)
	first := newCall()
	if first == nil {
		return nil, refuse(ErrOutOfMemory, "the process is out of memory")
	}
	status := C.rkv_cache_create(&s.config, c.putBuffers(&s.buffers, buffers), &s.cache, &s.err)
	store(&s.buffers.storage, 0)
	store(&s.buffers.workspace, 0)
	if status != C.RKV_OK {
		first.free()
		c.buffers.Unpin()
		return nil, newError(status, &s.err)
	}
	c.handle = s.cache
	c.self = uintptr(unsafe.Pointer(c))
	c.idle = append(c.idle, first)
	// Only for a Close that was forgotten. A finalizer runs before that of the Pinner inside, which
	// would end the process if it were still in use.
	runtime.SetFinalizer(c, (*Cache).Close)
	return c, nil
}

func (c *Cache) putBuffers(to *C.rkv_buffers, from *Buffers) *C.rkv_buffers {
	if from == nil {
		return nil
	}
	to.struct_size = C.sizeof_rkv_buffers
	put := func(data *unsafe.Pointer, bytes *C.int64_t, slice []byte, address uintptr, length int64) {
		if len(slice) == 0 {
			store(data, address)
			*bytes = C.int64_t(length)
			return
		}
		first := unsafe.Pointer(unsafe.SliceData(slice))
		c.buffers.Pin(first)
		*data = first
		*bytes = C.int64_t(len(slice))
	}
	put(&to.storage, &to.storage_bytes, from.Storage, from.DeviceStorage, from.DeviceStorageBytes)
	put(&to.workspace, &to.workspace_bytes, from.Workspace, from.DeviceWorkspace, from.DeviceWorkspaceBytes)
	return to
}

// NewBuffers allocates what a cache needs on the Go heap.
func (m Memory) NewBuffers() (Buffers, error) {
	storage, err := alignedBytes(m.StorageBytes, m.Alignment)
	if err != nil {
		return Buffers{}, err
	}
	workspace, err := alignedBytes(m.WorkspaceBytes, m.Alignment)
	return Buffers{Storage: storage, Workspace: workspace}, err
}

// alignedBytes makes a slice whose first byte is at a multiple of alignment, a power of two.
func alignedBytes(bytes, alignment int64) ([]byte, error) {
	const most = 1 << 46 // above it make panics; what the system cannot give ends every Go program
	if bytes < 0 || bytes > most || alignment < 1 || alignment > 1<<20 {
		return nil, refuse(ErrOutOfMemory, "%d bytes aligned to %d are more than Go can allocate", bytes, alignment)
	}
	block := make([]byte, bytes+alignment-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(block))) % uintptr(alignment)
	return block[skip : int64(skip)+bytes : int64(skip)+bytes], nil
}

// Close frees what the cache holds and gives the buffers back; sequences that are open go with it. It
// may be called again and then does nothing. While a call runs in another goroutine it is ErrBadState
// and the cache stays open.
func (c *Cache) Close() error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == nil {
		return nil
	}
	if err := c.notCopied(); err != nil {
		return err
	}
	if c.running > 0 {
		return refuse(ErrBadState, "Close: %d calls are running in the cache: close it after them", c.running)
	}
	C.rkv_cache_destroy(c.handle)
	c.handle = nil
	for _, k := range c.idle {
		k.free()
	}
	c.idle = nil
	c.buffers.Unpin()
	runtime.SetFinalizer(c, nil)
	return nil
}

// Config is what the cache was made for.
func (c *Cache) Config() Config {
	if c == nil {
		return Config{}
	}
	config := c.config
	config.DenseLayers = append([]int32(nil), config.DenseLayers...)
	return config
}

// Memory is what CacheMemory said of the cache's config.
func (c *Cache) Memory() Memory {
	if c == nil {
		return Memory{}
	}
	return c.memory
}

// SetStream makes stream, a cudaStream_t, that of the calls from now on; 0 = the default stream. On
// the CPU it is ignored.
func (c *Cache) SetStream(stream uintptr) {
	if c != nil {
		c.stream.Store(stream)
	}
}

// NewSelection makes a Selection for that many rows, of live rows. For more rows than a call may have it is
// empty, which that call refuses.
func (c *Cache) NewSelection(rows int) *Selection {
	if c == nil || rows < 0 || rows > int(max(c.config.MaxRows, c.config.MaxSequences, 1)) {
		return &Selection{}
	}
	lists := int64(rows) * int64(c.shape.kvHeads)
	return &Selection{
		Indices:  make([]int32, lists*c.memory.SelectionCapacity),
		Counts:   make([]int32, lists),
		Capacity: c.memory.SelectionCapacity,
	}
}

// notCopied: a copy has the handle and none of what guards it.
func (c *Cache) notCopied() error {
	if c.self == uintptr(unsafe.Pointer(c)) {
		return nil
	}
	return refuse(ErrInvalidArgument, "the cache is a copy: pass the pointer that NewCache gave")
}

// enter holds the cache open for a call and gives the C memory of its arguments.
func (c *Cache) enter() (*call, error) {
	if c == nil {
		return nil, refuse(ErrInvalidArgument, "the cache is nil: it must come from NewCache")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handle == nil {
		return nil, refuse(ErrBadState, "the cache is closed")
	}
	if err := c.notCopied(); err != nil {
		return nil, err
	}
	var k *call
	if n := len(c.idle); n > 0 {
		k = c.idle[n-1]
		c.idle = c.idle[:n-1]
	} else if k = newCall(); k == nil {
		return nil, refuse(ErrOutOfMemory, "the process is out of memory")
	}
	c.running++
	return k, nil
}

func (c *Cache) leave(k *call) {
	k.reset()
	c.mu.Lock()
	c.running--
	c.idle = append(c.idle, k)
	c.mu.Unlock()
}

// queue is the stream as C takes it: an address of the driver's, no memory of Go's.
func (c *Cache) queue() (stream unsafe.Pointer) {
	store(&stream, c.stream.Load())
	return stream
}
