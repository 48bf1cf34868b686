/* Prints the version of the library that is loaded, and compares its ABI with the header's. */
#include <rkv/rkv.h>
#include <stdio.h>

int main(void) {
  printf("%s\n", rkv_version_string());
  return rkv_abi_version() == RKV_ABI_VERSION ? 0 : 1;
}
