package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The golden runner itself: what is wrong in a file is found, with its place. */
class GoldenTest {
  private static final String CONFIG =
      "config layers=1 q_heads=2 kv_heads=1 head_dim=8 kv_dtype=1 max_prompt_tokens=40"
          + " max_new_tokens=4 token_budget=4096 num_threads=1";

  private static String run(String... lines) {
    try (GoldenRunner runner = new GoldenRunner()) {
      runner.run("file", List.of(lines));
      return runner.summary();
    }
  }

  private static void wrong(String place, String... lines) {
    GoldenLine.Mismatch e = assertThrows(GoldenLine.Mismatch.class, () -> run(lines));
    assertTrue(e.getMessage().startsWith(place), e.getMessage());
  }

  @Test
  void aRightFilePassesAndAChangedOneFails() {
    String[] lines = {
      "rkv-golden 1",
      "# a comment",
      "case one",
      CONFIG,
      "create",
      "open 0 3",
      "prefill 0 0 40 0 40",
      "kept 0 0",
      "= kept 0 0-39",
      "decode 0 0:40 ! INVALID_ARGUMENT rows",
      "stats 0 0",
      "= fields 0 position=40 nonfinite=0"
    };
    lines[9] = "rewind 0 41 ! INVALID_ARGUMENT position";
    String summary = run(lines);
    assertTrue(summary.startsWith("golden: 1 cases, checksum "), summary);
    assertEquals(summary, run(lines));
    String[][] changes = {
      {"8", "= kept 0 0-38"},
      {"8", "= kept 0 0-39,41"},
      {"9", "rewind 0 41 ! BAD_STATE position"},
      {"9", "rewind 0 41 ! INVALID_ARGUMENT elephant"},
      {"9", "rewind 0 41"},
      {"9", "rewind 0 40 ! INVALID_ARGUMENT position"},
      {"11", "= fields 0 position=41"},
      {"11", "= fields 0 elephant=41"},
      {"11", "= kept 0 0-39"},
      {"7", "elephant 0 0"}
    };
    for (String[] change : changes) {
      String[] changed = lines.clone();
      int index = Integer.parseInt(change[0]);
      changed[index] = change[1];
      wrong("file:" + (index + 1) + ": ", changed);
    }
    wrong("file:1: ", "rkv-golden 2");
    String[] other = lines.clone();
    other[9] = "rewind 0 39 ! INVALID_ARGUMENT position";
    assertEquals(summary, run(other), "the checksum is over the results");
  }

  @Test
  void everyOutputIsCompared() {
    String[] lines = {
      "rkv-golden 1",
      "case two",
      CONFIG + " query_dtype=1",
      "create",
      "open 0 3",
      "set v 0 0 0 1.5",
      "prefill 0 0 1 0 1",
      "attend 0 -1:0 ! INVALID_ARGUMENT selection",
      "decode 0 -1:0",
      "= out 0 1 0 0 0 0 0 0 0 0 0",
      "= lse 0 0 -inf -inf",
      "= selection 0 0 -"
    };
    lines[7] = "# nothing";
    String summary = run(lines);
    for (String[] change :
        new String[][] {
          {"9", "= out 0 1 0 0 0 0 0 0 0 0 1"},
          {"9", "= out 0 1 0 0 0 0 0 0 0 0"},
          {"10", "= lse 0 0 -inf inf"},
          {"11", "= selection 0 0 0"}
        }) {
      String[] changed = lines.clone();
      int index = Integer.parseInt(change[0]);
      changed[index] = change[1];
      wrong("file:" + (index + 1) + ": ", changed);
    }
    assertTrue(summary.startsWith("golden: 1 cases"));
  }
}
