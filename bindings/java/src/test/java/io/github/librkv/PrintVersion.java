package io.github.librkv;

/** A program for LibraryTest: loads the library, or prints why it could not. */
final class PrintVersion {
  private PrintVersion() {}

  public static void main(String[] args) {
    try {
      System.out.println("version " + Rkv.version());
    } catch (UnsatisfiedLinkError e) {
      System.out.println("refused " + e.getMessage());
    }
  }
}
