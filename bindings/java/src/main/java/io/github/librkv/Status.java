package io.github.librkv;

/** The kinds of errors, in the library's order. */
public enum Status {
  /** No error. */
  OK,
  /** A value, shape or dtype that can never be right here. */
  INVALID_ARGUMENT,
  /** Valid, but not served by this version, build or backend. */
  UNSUPPORTED,
  /** More than the cache was created for. */
  OUT_OF_CAPACITY,
  /** A buffer of the caller's; the text says the need. */
  BUFFER_TOO_SMALL,
  /** The right call at the wrong moment: closed, not open, or in use by another thread. */
  BAD_STATE,
  /** The device failed; only closing is valid from here on. */
  DEVICE_ERROR,
  /** Imported bytes of another version or byte order. */
  ABI_MISMATCH,
  /** Imported bytes that are damaged or do not fit together. */
  CORRUPT_DATA,
  /** Memory or threads. */
  OUT_OF_MEMORY,
  /** A bug of the library. */
  INTERNAL,
  /** A status that this binding does not know; {@link RkvException#statusCode} has its number. */
  UNKNOWN;

  static Status of(int code) {
    return code >= 0 && code < UNKNOWN.ordinal() ? values()[code] : UNKNOWN;
  }
}
