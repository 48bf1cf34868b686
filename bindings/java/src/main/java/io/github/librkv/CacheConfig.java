package io.github.librkv;

/**
 * What a cache is made for. Immutable; a field that is not given is the library's default, named
 * beside it. "plan" = what follows from the budget ({@link Plan}). The library alone checks the
 * values.
 */
public final class CacheConfig {
  /** Kinds of devices. */
  public enum DeviceType {
    /** This machine's processor. */
    CPU,
    /** A CUDA device. */
    CUDA
  }

  /** Where kept rows lie. */
  public enum Storage {
    /** Copied into the cache. */
    COMPACT,
    /** Lists and summaries over the engine's own K and V (multi-turn). */
    INDEXED
  }

  /** What stage 2 selects. */
  public enum SelectionUnit {
    /** Whole pages. */
    PAGES,
    /** Exactly top_k tokens. */
    TOKENS
  }

  /** Over which keys stage 1 normalises. */
  public enum Stage1Domain {
    /** All keys. */
    ALL,
    /** Those before the window. */
    PREFIX_ONLY
  }

  /** Over what stage 2 normalises. */
  public enum SelectionDomain {
    /** Tokens. */
    TOKENS,
    /** Pages. */
    PAGES
  }

  /** Kinds of pooling. */
  public enum Pooling {
    /** The largest. */
    MAX,
    /** The mean. */
    AVG
  }

  /** Scales of the approximate logits. */
  public enum Temperature {
    /** SparQ's, by the share of the chosen channels. */
    SPARQ,
    /** The square root of D. */
    SQRT_D
  }

  private final Builder fields;

  private CacheConfig(Builder fields) {
    this.fields = fields;
  }

  /**
   * A builder with every field at its default.
   *
   * @return at least layers, heads, head size, type, the two numbers of tokens and a budget must be
   *     set
   */
  public static Builder builder() {
    return new Builder();
  }

  /**
   * A builder with this config's fields.
   *
   * @return a copy
   */
  public Builder toBuilder() {
    return new Builder(fields);
  }

  /**
   * Hq.
   *
   * @return query heads
   */
  public int qHeads() {
    return fields.qHeads;
  }

  /**
   * Hkv.
   *
   * @return KV heads
   */
  public int kvHeads() {
    return fields.kvHeads;
  }

  /**
   * The slots.
   *
   * @return 1 where none were given
   */
  public int maxSequences() {
    return Math.max(fields.maxSequences, 1);
  }

  /** To be deleted by the caller. */
  NativeConfig toNative() {
    NativeConfig c = new NativeConfig();
    Builder f = fields;
    c.setDeviceType(f.deviceType);
    c.setDevice(f.device);
    c.setLayers(f.layers);
    c.setQHeads(f.qHeads);
    c.setKvHeads(f.kvHeads);
    c.setHeadDim(f.headDim);
    c.setHeadDimV(f.headDimV);
    c.setKvDtype(f.kvDtype);
    c.setQueryDtype(f.queryDtype);
    c.setSummaryDtype(f.summaryDtype);
    c.setStorage(f.storage);
    c.setMaxSequences(f.maxSequences);
    c.setMaxRows(f.maxRows);
    c.setMaxPrefills(f.maxPrefills);
    c.setNumThreads(f.numThreads);
    c.setMaxPromptTokens(f.maxPromptTokens);
    c.setMaxNewTokens(f.maxNewTokens);
    c.setTokenBudget(f.tokenBudget);
    c.setCompressionRatio(f.compressionRatio);
    c.setPromptBudget(f.promptBudget);
    c.setTopK(f.topK);
    c.setPageSize(f.pageSize);
    c.setNumChannels(f.numChannels);
    c.setWindowSize(f.windowSize);
    c.setKernelSize(f.kernelSize);
    c.setSinks(f.sinks);
    c.setRecentTokens(f.recentTokens);
    c.setSelectionUnit(f.selectionUnit);
    c.setStage1Domain(f.stage1Domain);
    c.setSelectionDomain(f.selectionDomain);
    c.setPooling(f.pooling);
    c.setTemperature(f.temperature);
    c.setKeyAsQuery(f.keyAsQuery);
    c.setSoftmaxScale(f.softmaxScale);
    c.setLogitSoftcap(f.logitSoftcap);
    try {
      for (int layer : f.denseLayers) c.set_dense_layer(layer);
    } catch (RkvException e) {
      c.delete();
      throw e;
    }
    return c;
  }

  /** Fields of a config, as the library's numbers. */
  public static final class Builder {
    int deviceType;
    int device;
    int layers;
    int qHeads;
    int kvHeads;
    int headDim;
    int headDimV;
    int kvDtype;
    int queryDtype;
    int summaryDtype;
    int storage;
    int maxSequences;
    int maxRows;
    int maxPrefills;
    int numThreads;
    long maxPromptTokens;
    long maxNewTokens;
    long tokenBudget;
    double compressionRatio;
    long promptBudget;
    long topK;
    int pageSize;
    int numChannels;
    int windowSize;
    int kernelSize;
    int sinks;
    int recentTokens;
    int selectionUnit;
    int stage1Domain;
    int selectionDomain;
    int pooling;
    int temperature;
    int keyAsQuery;
    float softmaxScale;
    float logitSoftcap;
    int[] denseLayers = {};

    private Builder() {}

    private Builder(Builder o) {
      deviceType = o.deviceType;
      device = o.device;
      layers = o.layers;
      qHeads = o.qHeads;
      kvHeads = o.kvHeads;
      headDim = o.headDim;
      headDimV = o.headDimV;
      kvDtype = o.kvDtype;
      queryDtype = o.queryDtype;
      summaryDtype = o.summaryDtype;
      storage = o.storage;
      maxSequences = o.maxSequences;
      maxRows = o.maxRows;
      maxPrefills = o.maxPrefills;
      numThreads = o.numThreads;
      maxPromptTokens = o.maxPromptTokens;
      maxNewTokens = o.maxNewTokens;
      tokenBudget = o.tokenBudget;
      compressionRatio = o.compressionRatio;
      promptBudget = o.promptBudget;
      topK = o.topK;
      pageSize = o.pageSize;
      numChannels = o.numChannels;
      windowSize = o.windowSize;
      kernelSize = o.kernelSize;
      sinks = o.sinks;
      recentTokens = o.recentTokens;
      selectionUnit = o.selectionUnit;
      stage1Domain = o.stage1Domain;
      selectionDomain = o.selectionDomain;
      pooling = o.pooling;
      temperature = o.temperature;
      keyAsQuery = o.keyAsQuery;
      softmaxScale = o.softmaxScale;
      logitSoftcap = o.logitSoftcap;
      denseLayers = o.denseLayers.clone();
    }

    /**
     * The config as set so far; the builder may go on.
     *
     * @return a copy; the library checks it where it is used
     */
    public CacheConfig build() {
      return new CacheConfig(new Builder(this));
    }

    /**
     * Where the cache lives; the CPU unless given.
     *
     * @param type the kind
     * @param ordinal of the device, 0 on the CPU
     * @return this
     */
    public Builder device(DeviceType type, int ordinal) {
      deviceType = type.ordinal();
      device = ordinal;
      return this;
    }

    /**
     * Layers that keep the whole prompt and attend to all of it.
     *
     * @param layers 0 to 255
     * @return this
     */
    public Builder denseLayers(int... layers) {
      denseLayers = layers.clone();
      return this;
    }

    /** How many layers, all of this shape; sliding-window layers stay out; 1 to 256. */
    public Builder layers(int value) {
      layers = value;
      return this;
    }

    /** Hq, the query heads of this rank; a multiple of the KV heads. */
    public Builder qHeads(int value) {
      qHeads = value;
      return this;
    }

    /** Hkv, the KV heads of this rank; 1 or more. */
    public Builder kvHeads(int value) {
      kvHeads = value;
      return this;
    }

    /** D, the head size of Q and K; a multiple of 8 up to 256. */
    public Builder headDim(int value) {
      headDim = value;
      return this;
    }

    /** Dv, the head size of V; 0 = D. */
    public Builder headDimV(int value) {
      headDimV = value;
      return this;
    }

    /** Type of K and V; must be given; F32, F16 or BF16. */
    public Builder kvDtype(DType value) {
      kvDtype = value.code();
      return this;
    }

    /** Type of q and out; that of K and V unless given; F32, F16 or BF16. */
    public Builder queryDtype(DType value) {
      queryDtype = value.code();
      return this;
    }

    /** Type of the page summaries; that of K and V unless given; also E4M3, E5M2. */
    public Builder summaryDtype(DType value) {
      summaryDtype = value.code();
      return this;
    }

    /** Where kept rows lie; COMPACT unless given. */
    public Builder storage(Storage value) {
      storage = value.ordinal();
      return this;
    }

    /** Slots; 0 = 1. */
    public Builder maxSequences(int value) {
      maxSequences = value;
      return this;
    }

    /** Rows of one decode call; 0 = the slots. */
    public Builder maxRows(int value) {
      maxRows = value;
      return this;
    }

    /** Sequences whose window rows wait over calls; 0 = 1. */
    public Builder maxPrefills(int value) {
      maxPrefills = value;
      return this;
    }

    /** Threads of the CPU backend, the caller's included; 0 = all. */
    public Builder numThreads(int value) {
      numThreads = value;
      return this;
    }

    /** Bounds every S; positions stay below 2^31. */
    public Builder maxPromptTokens(long value) {
      maxPromptTokens = value;
      return this;
    }

    /** Generated tokens per prompt; drafts included. */
    public Builder maxNewTokens(long value) {
      maxNewTokens = value;
      return this;
    }

    /** t: tokens' worth of traffic per step; this or the ratio; tokens. */
    public Builder tokenBudget(long value) {
      tokenBudget = value;
      return this;
    }

    /** (S + max_new) / t; this or the token budget; at least 1. */
    public Builder compressionRatio(double value) {
      compressionRatio = value;
      return this;
    }

    /** Tokens that stage 1 keeps; 0 = plan. */
    public Builder promptBudget(long value) {
      promptBudget = value;
      return this;
    }

    /** Tokens that stage 2 selects; 0 = plan. */
    public Builder topK(long value) {
      topK = value;
      return this;
    }

    /** P, tokens of a page; alone it also recomputes the channels; 0 = plan. */
    public Builder pageSize(int value) {
      pageSize = value;
      return this;
    }

    /** r, channels of a key that stage 2 scores with; 0 = plan. */
    public Builder numChannels(int value) {
      numChannels = value;
      return this;
    }

    /** W, the last queries of the prompt that stage 1 looks at; 0 = 32. */
    public Builder windowSize(int value) {
      windowSize = value;
      return this;
    }

    /** Pooling of stage 1, in tokens; odd; 0 = 63. */
    public Builder kernelSize(int value) {
      kernelSize = value;
      return this;
    }

    /** First tokens that both stages always keep; tokens. */
    public Builder sinks(int value) {
      sinks = value;
      return this;
    }

    /** Newest live tokens that stage 2 always selects; tokens. */
    public Builder recentTokens(int value) {
      recentTokens = value;
      return this;
    }

    /** What stage 2 selects; PAGES unless given. */
    public Builder selectionUnit(SelectionUnit value) {
      selectionUnit = value.ordinal();
      return this;
    }

    /** Over which keys stage 1 normalises; ALL unless given. */
    public Builder stage1Domain(Stage1Domain value) {
      stage1Domain = value.ordinal();
      return this;
    }

    /** Over what stage 2 normalises; TOKENS unless given. */
    public Builder selectionDomain(SelectionDomain value) {
      selectionDomain = value.ordinal();
      return this;
    }

    /** Kind of stage 1's pooling; MAX unless given. */
    public Builder pooling(Pooling value) {
      pooling = value.ordinal();
      return this;
    }

    /** Scale of stage 2's approximate logits; SPARQ unless given. */
    public Builder temperature(Temperature value) {
      temperature = value.ordinal();
      return this;
    }

    /** The last W keys stand in for queries; false unless given. */
    public Builder keyAsQuery(boolean value) {
      keyAsQuery = value ? 1 : 0;
      return this;
    }

    /** Scale of the logits; 0 = 1 / sqrt(D). */
    public Builder softmaxScale(float value) {
      softmaxScale = value;
      return this;
    }

    /** cap * tanh(x / cap) on the logits; 0 = none. */
    public Builder logitSoftcap(float value) {
      logitSoftcap = value;
      return this;
    }
  }
}
