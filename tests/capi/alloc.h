/* Allocation of the whole process, watched and made to fail: every thread, the library's own
 * operator new included. A sanitizer brings its own allocator; there its hooks count. */
#ifndef RKV_TESTS_ALLOC_H
#define RKV_TESTS_ALLOC_H

#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
  atomic_int watching;     /* the counters below move only while set */
  atomic_long allocations; /* of memory, mappings and threads */
  atomic_long live;        /* allocations minus frees */
  atomic_long countdown;   /* the allocation that makes it 0 fails; 0 and below: none fails */
  atomic_long failures;    /* allocations that were made to fail */
} alloc;

static inline void alloc_watch(long fail_at) {
  atomic_store(&alloc.allocations, 0);
  atomic_store(&alloc.live, 0);
  atomic_store(&alloc.failures, 0);
  atomic_store(&alloc.countdown, fail_at);
  atomic_store(&alloc.watching, 1);
}

/* Allocations seen since alloc_watch. */
static inline long alloc_unwatch(void) {
  atomic_store(&alloc.watching, 0);
  return atomic_load(&alloc.allocations);
}

static inline void alloc_count(void) {
  if (!atomic_load(&alloc.watching)) return;
  atomic_fetch_add(&alloc.allocations, 1);
  atomic_fetch_add(&alloc.live, 1);
}

static inline void alloc_count_free(void) {
  if (atomic_load(&alloc.watching)) atomic_fetch_sub(&alloc.live, 1);
}

#if CHECK_SANITIZER

int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                              void (*on_free)(const volatile void*));
static void alloc_on_malloc(const volatile void* p, size_t size) {
  (void)p, (void)size;
  alloc_count();
}
static void alloc_on_free(const volatile void* p) {
  if (p != NULL) alloc_count_free();
}
static inline void alloc_init(void) {
  REQUIRE(__sanitizer_install_malloc_and_free_hooks(alloc_on_malloc, alloc_on_free) > 0);
}

#else

static int (*alloc_pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
static inline void alloc_init(void) {
  void* symbol = dlsym(RTLD_NEXT, "pthread_create");
  REQUIRE(symbol != NULL);
  memcpy(&alloc_pthread_create, &symbol, sizeof symbol);
}

/* Whether this allocation is the one to fail. */
static int alloc_fails(void) {
  if (!atomic_load(&alloc.watching) || atomic_load(&alloc.countdown) <= 0) return 0;
  if (atomic_fetch_sub(&alloc.countdown, 1) != 1) return 0;
  atomic_fetch_add(&alloc.failures, 1);
  errno = ENOMEM;
  return 1;
}

/* glibc's own entries behind the names that are replaced here. */
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

#define ALLOC_EXPORT __attribute__((visibility("default")))
#define ALLOCATE(call)              \
  do {                              \
    if (alloc_fails()) return NULL; \
    void* allocated = call;         \
    if (allocated) alloc_count();   \
    return allocated;               \
  } while (0)

ALLOC_EXPORT void* malloc(size_t size) { ALLOCATE(__libc_malloc(size)); }
ALLOC_EXPORT void* calloc(size_t n, size_t size) { ALLOCATE(__libc_calloc(n, size)); }
ALLOC_EXPORT void* aligned_alloc(size_t align, size_t size) {
  ALLOCATE(__libc_memalign(align, size));
}
ALLOC_EXPORT void* memalign(size_t align, size_t size) { ALLOCATE(__libc_memalign(align, size)); }
ALLOC_EXPORT int posix_memalign(void** out, size_t align, size_t size) {
  if (alloc_fails()) return ENOMEM;
  *out = __libc_memalign(align, size);
  if (*out != NULL) alloc_count();
  return *out != NULL ? 0 : ENOMEM;
}
ALLOC_EXPORT void* realloc(void* p, size_t size) {
  if (alloc_fails()) return NULL;
  if (p != NULL) alloc_count_free();
  p = __libc_realloc(p, size);
  if (p != NULL) alloc_count();
  return p;
}
ALLOC_EXPORT void free(void* p) {
  if (p != NULL) alloc_count_free();
  __libc_free(p);
}
ALLOC_EXPORT void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  if (alloc_fails()) return MAP_FAILED;
  if (atomic_load(&alloc.watching)) atomic_fetch_add(&alloc.allocations, 1);
  const long result = syscall(SYS_mmap, at, size, protection, flags, file, offset);
  return result == -1 ? MAP_FAILED : (void*)result; /* syscall has set errno */
}
ALLOC_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                void* (*run)(void*), void* argument) {
  if (alloc_fails()) return EAGAIN;
  if (atomic_load(&alloc.watching)) atomic_fetch_add(&alloc.allocations, 1);
  return alloc_pthread_create(thread, attributes, run, argument);
}

#endif
#endif
