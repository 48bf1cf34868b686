package engine;

import io.github.librkv.CacheConfig.Builder;
import io.github.librkv.Rkv;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * Engine MODEL.gguf PROMPTS.json [NAME...]: reads the prompts of these names (all) in one batch and
 * compares. With the full budget every token must be the one that full attention gave, but where
 * its margin was below .02; then, with t = 256, the long prompt is answered in a compressed cache.
 */
final class Engine {
  private static final long BUDGET = 256;
  private static final double MARGIN = 0.02; // of logits that the order of additions may swap
  private static final int SAME = 8; // tokens of the compressed answer that must be right

  private record Case(String name, int[] prompt, int[] greedy, double[] margin) {}

  public static void main(String[] args) throws IOException {
    if (args.length < 2) {
      System.err.println("Engine MODEL.gguf PROMPTS.json [NAME...]");
      System.exit(2);
    }
    long start = System.nanoTime();
    List<Case> cases = cases(Path.of(args[1]), List.of(args).subList(2, args.length));
    Gguf file = new Gguf(Path.of(args[0]));
    SmolLM2 model = new SmolLM2(file);
    System.out.printf("librkv %s, weights read: %.1f s%n", Rkv.version(), seconds(start));

    int longest = cases.stream().mapToInt(c -> c.prompt.length).max().orElseThrow();
    int fresh = cases.stream().mapToInt(c -> c.greedy.length).max().orElseThrow();
    Case last = cases.stream().filter(c -> c.prompt.length > 2 * BUDGET).findFirst().orElse(null);
    boolean right = true;
    int rows = longest + fresh;
    // All of the prompt is kept, all that is kept is attended to.
    UnaryOperator<Builder> all =
        b -> b.tokenBudget(rows).promptBudget(Math.max(longest, 32)).topK(rows);
    try (Session full = new Session(model, cases.size(), longest, fresh, all);
        Session small =
            new Session(model, cases.size(), longest, fresh, b -> b.tokenBudget(BUDGET))) {
      start = System.nanoTime();
      float[][] logits = new float[cases.size()][];
      for (int text = 0; text < logits.length; ++text) {
        Case c = cases.get(text);
        logits[text] =
            c == last
                ? Session.prefill(model, text, c.prompt, full, small)
                : Session.prefill(model, text, c.prompt, full);
      }
      float[] compressed = last == null ? null : logits[cases.indexOf(last)];
      System.out.printf("%d prompts read: %.1f s%n", logits.length, seconds(start));
      right &= fullBudget(cases, full, logits, fresh);
      if (last != null) right &= answer(last, cases.indexOf(last), small, compressed, file);
    }
    System.out.println(right ? "engine: right" : "engine: WRONG");
    System.exit(right ? 0 : 1);
  }

  /** The known tokens go in, so that every step is compared. */
  private static boolean fullBudget(
      List<Case> cases, Session session, float[][] logits, int fresh) {
    long start = System.nanoTime();
    int wrong = 0;
    int close = 0;
    int compared = 0;
    for (int i = 0; i < fresh; ++i) {
      int[] ids = new int[cases.size()];
      long[] positions = new long[cases.size()];
      for (int text = 0; text < ids.length; ++text) {
        Case c = cases.get(text);
        int at = Math.min(i, c.greedy.length - 1); // a text that is done repeats its last token
        ids[text] = c.greedy[at];
        positions[text] = c.prompt.length + at;
        if (at < i) continue;
        ++compared;
        int got = largest(logits[text]);
        if (got == c.greedy[i]) continue;
        if (c.margin[i] < MARGIN) {
          ++close;
        } else {
          ++wrong;
          System.out.printf("%s: token %d is %d, not %d%n", c.name, i, got, c.greedy[i]);
        }
      }
      if (i + 1 < fresh) logits = session.decode(ids, positions);
    }
    System.out.printf(
        "full budget: %d of %d tokens as full attention gives them, %d within the margin; %.1f s%n",
        compared - wrong - close, compared, close, seconds(start));
    return wrong == 0;
  }

  /** One text by itself, its own tokens going in. */
  private static boolean answer(Case c, int text, Session session, float[] logits, Gguf file) {
    int[] out = new int[c.greedy.length];
    for (int i = 0; i < out.length; ++i) {
      out[i] = largest(logits);
      if (i + 1 < out.length) logits = session.decode(text, out[i], c.prompt.length + i);
    }
    long[] bytes = session.bytes(text);
    System.out.printf(
        "%s at t = %d, %d KB of %d: \"%s\"%n",
        c.name, BUDGET, bytes[0] >> 10, bytes[1] >> 10, new Tokens(file).text(out).strip());
    return Arrays.equals(Arrays.copyOf(out, SAME), Arrays.copyOf(c.greedy, SAME));
  }

  private static int largest(float[] values) {
    int best = 0;
    for (int i = 1; i < values.length; ++i) if (values[i] > values[best]) best = i;
    return best;
  }

  private static double seconds(long since) {
    return (System.nanoTime() - since) / 1e9;
  }

  private static List<Case> cases(Path path, List<String> wanted) throws IOException {
    List<Case> out = new ArrayList<>();
    for (Object entry : (List<?>) Json.parse(Files.readString(path))) {
      Map<?, ?> one = (Map<?, ?>) entry;
      String name = (String) one.get("name");
      if (!wanted.isEmpty() && !wanted.contains(name)) continue;
      out.add(
          new Case(
              name,
              numbers(one.get("prompt")).mapToInt(d -> (int) d).toArray(),
              numbers(one.get("greedy")).mapToInt(d -> (int) d).toArray(),
              numbers(one.get("margin")).toArray()));
    }
    if (out.isEmpty()) throw new IllegalArgumentException("no prompt of these names: " + wanted);
    return out;
  }

  private static java.util.stream.DoubleStream numbers(Object list) {
    return ((List<?>) list).stream().mapToDouble(n -> (Double) n);
  }
}
