package io.github.librkv;

/** The loaded library. */
public final class Rkv {
  private Rkv() {}

  /**
   * The release of the loaded C library.
   *
   * @return for instance {@code "0.1.0"}
   */
  public static String version() {
    return Native.rkv_version_string();
  }

  /**
   * The ABI of the loaded C library.
   *
   * @return major * 1000 + minor
   */
  public static int abiVersion() {
    return Native.rkv_abi_version();
  }

  /**
   * How many devices of a kind this build and this machine serve.
   *
   * @param type the kind
   * @return 1 for the CPU, 0 for CUDA where there is no driver or backend
   */
  public static int deviceCount(CacheConfig.DeviceType type) {
    return Native.rkv_device_count(type.ordinal());
  }
}
