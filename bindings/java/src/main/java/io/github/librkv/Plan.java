package io.github.librkv;

/**
 * All sizes that follow from one budget for a prompt of S tokens (paper section 3).
 *
 * @param raised the request is short: cap was raised to window + sinks + new tokens
 * @param dense everything kept is attended to, nothing is scored
 * @param pageSize tokens in a page
 * @param numChannels channels of a key that stage 2 scores with
 * @param cap tokens stored per KV head at most
 * @param promptBudget tokens of the prompt that stage 1 keeps
 * @param rows the most live rows that this prompt reaches
 * @param pages their pages, 0 where dense
 * @param topK tokens selected per step
 * @param tokenBudget t, within 1 to S + max_new
 * @param ratio c = (S + max_new) / t
 * @param split the paper's split factor
 * @param storageRatio stored bytes of full KV's, by the paper's formula
 * @param trafficRatio bytes read per step of full KV's, by the paper's formula
 */
public record Plan(
    boolean raised,
    boolean dense,
    int pageSize,
    int numChannels,
    long cap,
    long promptBudget,
    long rows,
    long pages,
    long topK,
    long tokenBudget,
    double ratio,
    double split,
    double storageRatio,
    double trafficRatio) {

  /**
   * The plan of a prompt under the config's own budget. Needs no cache; fields of the config that
   * only size a cache may be left out.
   *
   * @param config shapes and budget
   * @param promptTokens S, 1 or more
   * @return the sizes
   */
  public static Plan of(CacheConfig config, long promptTokens) {
    return of(config, SequenceOptions.DEFAULT, promptTokens);
  }

  /**
   * The plan of a prompt under a request's own budget.
   *
   * @param config shapes and budget
   * @param options what the request asks for
   * @param promptTokens S, 1 or more
   * @return the sizes
   */
  public static Plan of(CacheConfig config, SequenceOptions options, long promptTokens) {
    NativeConfig c = config.toNative();
    NativeOptions o = options.toNative();
    NativePlan plan = new NativePlan();
    try {
      Native.rkv_plan_make(c, o, promptTokens, plan);
      return of(plan);
    } finally {
      plan.delete();
      o.delete();
      c.delete();
    }
  }

  static Plan of(NativePlan p) {
    return new Plan(
        p.getRaised() != 0,
        p.getDense() != 0,
        p.getPageSize(),
        p.getNumChannels(),
        p.getCap(),
        p.getPromptBudget(),
        p.getRows(),
        p.getPages(),
        p.getTopK(),
        p.getTokenBudget(),
        p.getRatio(),
        p.getSplit(),
        p.getStorageRatio(),
        p.getTrafficRatio());
  }
}
