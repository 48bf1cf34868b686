package io.github.librkv;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Loads the native code: from the folder in the system property {@code rkv.library.path} and
 * nowhere else where that is set; from {@code java.library.path} where it is there; else from the
 * jar. What was found and could not be loaded is an error that names the file: another version is
 * never taken in silence.
 */
final class NativeLibrary {
  static final String PROPERTY = "rkv.library.path";
  private static final String SHIM = System.mapLibraryName("rkv_java");
  private static final List<String> IN_JAR = List.of("librkv.so.0", SHIM);

  private NativeLibrary() {}

  static void load() {
    String folder = System.getProperty(PROPERTY);
    if (folder != null) {
      loadFile(Path.of(folder, SHIM), PROPERTY);
    } else {
      Path found = inLibraryPath();
      if (found != null) {
        loadFile(found, "java.library.path");
      } else {
        loadFromJar();
      }
    }
    int compiled = Native.compiled_abi_version();
    int loaded = Native.rkv_abi_version();
    if (compiled != loaded) {
      throw new UnsatisfiedLinkError(
          "librkv has ABI version " + loaded + ", " + SHIM + " was built for " + compiled);
    }
  }

  private static Path inLibraryPath() {
    for (String folder : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
      if (!folder.isEmpty() && Files.exists(Path.of(folder, SHIM))) return Path.of(folder, SHIM);
    }
    return null;
  }

  private static void loadFile(Path file, String from) {
    try {
      System.load(file.toAbsolutePath().toString());
    } catch (UnsatisfiedLinkError e) {
      throw refused(file.toAbsolutePath() + " (by " + from + "): " + e.getMessage(), e);
    }
  }

  /** The files are gone from the disk as soon as they are loaded. */
  private static void loadFromJar() {
    String folder = "native/" + platform() + "/";
    List<Path> made = new ArrayList<>();
    try {
      Path temporary = Files.createTempDirectory("rkv");
      made.add(temporary);
      for (String name : IN_JAR) {
        try (InputStream in = NativeLibrary.class.getResourceAsStream(folder + name)) {
          if (in == null) throw refused("no " + folder + name + " in the jar", null);
          Path file = temporary.resolve(name);
          made.add(file);
          Files.copy(in, file);
        }
      }
      loadFile(temporary.resolve(SHIM), "the copy from the jar");
    } catch (IOException e) {
      throw refused("copy from the jar to " + System.getProperty("java.io.tmpdir") + ": " + e, e);
    } finally {
      for (int i = made.size() - 1; i >= 0; --i) made.get(i).toFile().delete();
    }
  }

  private static String platform() {
    String machine = System.getProperty("os.arch");
    if (machine.equals("amd64")) machine = "x86_64";
    return System.getProperty("os.name").toLowerCase().replace(' ', '-') + "-" + machine;
  }

  private static UnsatisfiedLinkError refused(String text, Throwable cause) {
    UnsatisfiedLinkError error =
        new UnsatisfiedLinkError(
            text + "; -D" + PROPERTY + "=FOLDER names the folder of " + String.join(", ", IN_JAR));
    error.initCause(cause);
    return error;
  }
}
