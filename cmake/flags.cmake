# Flags of everything that is built here.

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Debug information also in a release: the ABI check and profilers read it, strip removes it.
set(CMAKE_C_FLAGS_RELEASE "-O3 -g -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g -DNDEBUG")

# Interface target with the flags of our own sources. No contraction: a product and a sum are
# rounded the same way on every SIMD target unless the code itself asks for a fused one.
add_library(rkv_flags INTERFACE)
target_compile_options(rkv_flags INTERFACE -Wall -Wextra -Wvla -ffp-contract=off
  $<$<COMPILE_LANGUAGE:C>:-Wpedantic> # not in C++, which uses __int128 where int64 may overflow
  $<$<BOOL:${RKV_WERROR}>:-Werror>)

if(RKV_SANITIZE)
  list(JOIN RKV_SANITIZE "," sanitizers)
  # -O1: the kernels, compiled once per SIMD target, would take minutes each at -O2.
  target_compile_options(rkv_flags INTERFACE -O1 -fsanitize=${sanitizers}
    -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # A null pointer is a fault that AddressSanitizer shows as well; the checks double the build.
  if("address" IN_LIST RKV_SANITIZE)
    target_compile_options(rkv_flags INTERFACE -fno-sanitize=null,object-size,vptr)
  endif()
  target_link_options(rkv_flags INTERFACE -fsanitize=${sanitizers})
endif()
