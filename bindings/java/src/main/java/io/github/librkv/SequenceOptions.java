package io.github.librkv;

/**
 * One request's own sizes; 0 takes the cache's. Give a token budget or a ratio, not both.
 *
 * @param maxNewTokens generated tokens, drafts included
 * @param tokenBudget t: tokens' worth of traffic per step
 * @param compressionRatio (S + maxNewTokens) / t, at least 1
 */
public record SequenceOptions(long maxNewTokens, long tokenBudget, double compressionRatio) {
  /** The cache's own sizes. */
  public static final SequenceOptions DEFAULT = new SequenceOptions(0, 0, 0);

  /**
   * These options with another budget.
   *
   * @param tokens t
   * @return a copy
   */
  public SequenceOptions withTokenBudget(long tokens) {
    return new SequenceOptions(maxNewTokens, tokens, compressionRatio);
  }

  /**
   * These options with another ratio.
   *
   * @param ratio at least 1
   * @return a copy
   */
  public SequenceOptions withCompressionRatio(double ratio) {
    return new SequenceOptions(maxNewTokens, tokenBudget, ratio);
  }

  /**
   * These options with another number of new tokens.
   *
   * @param tokens drafts included
   * @return a copy
   */
  public SequenceOptions withMaxNewTokens(long tokens) {
    return new SequenceOptions(tokens, tokenBudget, compressionRatio);
  }

  NativeOptions toNative() {
    NativeOptions o = new NativeOptions();
    o.setMaxNewTokens(maxNewTokens);
    o.setTokenBudget(tokenBudget);
    o.setCompressionRatio(compressionRatio);
    return o;
  }
}
