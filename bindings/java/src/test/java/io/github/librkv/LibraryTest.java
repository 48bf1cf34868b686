package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where the native code comes from; each case in a Java of its own. */
class LibraryTest {
  @TempDir Path temporary;

  private static Path place(Class<?> type) throws URISyntaxException {
    return Path.of(type.getProtectionDomain().getCodeSource().getLocation().toURI());
  }

  private String run(String... options) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Djava.io.tmpdir=" + temporary); // the last of several counts
    command.addAll(List.of(options));
    String separator = System.getProperty("path.separator");
    command.add("-cp");
    command.add(place(Rkv.class) + separator + place(PrintVersion.class));
    command.add(PrintVersion.class.getName());
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String out = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, process.waitFor(), out);
    return out.trim();
  }

  /** A folder with the libraries of the jar. */
  private Path libraries(String... names) throws IOException {
    Path folder = Files.createTempDirectory(temporary, "libraries");
    for (String name : names) {
      try (var in = Rkv.class.getResourceAsStream("native/linux-" + machine() + "/" + name)) {
        Files.copy(in, folder.resolve(name));
      }
    }
    return folder;
  }

  private static String machine() {
    return System.getProperty("os.arch").equals("amd64") ? "x86_64" : System.getProperty("os.arch");
  }

  @Test
  void fromTheJarAndNothingIsLeftBehind() throws Exception {
    assertEquals("version " + Rkv.version(), run());
    try (var left = Files.list(temporary)) {
      assertEquals(0, left.filter(p -> p.getFileName().toString().startsWith("rkv")).count());
    }
  }

  @Test
  void fromTheFolderThatThePropertyNamesAndNowhereElse() throws Exception {
    Path good = libraries("librkv.so.0", "librkv_java.so");
    assertEquals("version " + Rkv.version(), run("-Drkv.library.path=" + good));
    String out = run("-Drkv.library.path=/no/such/folder");
    assertTrue(out.startsWith("refused /no/such/folder/librkv_java.so (by rkv.library.path)"), out);
  }

  @Test
  void aMissingLibrkvIsNamed() throws Exception {
    Path half = libraries("librkv_java.so");
    String out = run("-Drkv.library.path=" + half);
    assertTrue(out.startsWith("refused " + half.resolve("librkv_java.so")), out);
    assertTrue(out.contains("librkv.so.0: cannot open"), out);
  }

  @Test
  void fromJavaLibraryPathBeforeTheJar() throws Exception {
    Path good = libraries("librkv.so.0", "librkv_java.so");
    String path = "-Djava.library.path=/no/such/folder:";
    assertEquals("version " + Rkv.version(), run(path + good));
    assertEquals("version " + Rkv.version(), run(path));
    Path broken = Files.createTempDirectory(temporary, "broken");
    Files.writeString(broken.resolve("librkv_java.so"), "no library");
    String out = run(path + broken);
    assertTrue(out.contains(broken + "/librkv_java.so (by java.library.path)"), out);
  }

  @Test
  void aFolderThatTakesNoCopyIsNamed() throws Exception {
    String out = run("-Djava.io.tmpdir=/no/such/folder");
    assertTrue(out.startsWith("refused copy from the jar to /no/such/folder"), out);
  }
}
