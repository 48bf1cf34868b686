package io.github.librkv;

/** What the library, or this binding on its behalf, refuses. */
public final class RkvException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** The library's status number. */
  private final int statusCode;

  /** The device's or system's own code. */
  private final int nativeCode;

  /** Called by the native code. */
  RkvException(int statusCode, int nativeCode, String text) {
    super(text);
    this.statusCode = statusCode;
    this.nativeCode = nativeCode;
  }

  private RkvException(Status status, String text) {
    this(status.ordinal(), 0, text);
  }

  static RkvException invalid(String format, Object... values) {
    return new RkvException(Status.INVALID_ARGUMENT, String.format(format, values));
  }

  static RkvException tooSmall(String name, long bytes, long need) {
    return new RkvException(
        Status.BUFFER_TOO_SMALL, String.format("%s: %d bytes, need %d", name, bytes, need));
  }

  static RkvException badState(String text) {
    return new RkvException(Status.BAD_STATE, text);
  }

  /**
   * The kind of the error.
   *
   * @return never {@link Status#OK}
   */
  public Status status() {
    return Status.of(statusCode);
  }

  /**
   * The library's number of the kind, also of kinds that this binding does not know.
   *
   * @return rkv_status
   */
  public int statusCode() {
    return statusCode;
  }

  /**
   * The code of the device or the system behind the error.
   *
   * @return 0 where there is none
   */
  public int nativeCode() {
    return nativeCode;
  }
}
