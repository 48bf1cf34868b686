package io.github.librkv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Reference;

/**
 * The native cache behind a {@link Cache} and who is inside it: calls count themselves in and out,
 * closing lets no more in and waits for the last to leave. Also what is left to do when the Cache
 * was never closed, so it must not know that object.
 */
final class CacheState implements Runnable {
  private static final System.Logger LOG = System.getLogger("io.github.librkv");
  private static final int CLOSED = Integer.MIN_VALUE; // this bit; the rest counts the calls
  private static final VarHandle CALLS;

  static {
    try {
      CALLS = MethodHandles.lookup().findVarHandle(CacheState.class, "calls", int.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** What is done with rows. */
  enum Rows {
    DECODE_SELECT,
    ATTEND,
    DECODE,
    AUDIT
  }

  interface Call {
    void on(long cache);
  }

  private final long pointer;
  private final Buffers buffers; // null: the library's own
  private volatile int calls;

  CacheState(long pointer, Buffers buffers) {
    this.pointer = pointer;
    this.buffers = buffers;
  }

  /** The native cache, for a call that ends with {@link #exit}. */
  long enter() {
    for (int seen = calls; seen >= 0; seen = calls) {
      if (CALLS.compareAndSet(this, seen, seen + 1)) return pointer;
    }
    throw RkvException.badState("the cache is closed");
  }

  void exit() {
    if ((int) CALLS.getAndAdd(this, -1) == CLOSED + 1) {
      synchronized (this) {
        notifyAll();
      }
    }
  }

  /** A call; until its end neither the native cache nor `owner`, whose loss frees it, may go. */
  void call(Cache owner, Call body) {
    long cache = enter();
    try {
      body.on(cache);
    } finally {
      exit();
      Reference.reachabilityFence(owner);
    }
  }

  /** The hot path: makes no object. */
  void rows(
      Cache owner,
      Rows kind,
      CacheConfig config,
      int layer,
      DecodeArgs args,
      NativeAudit result,
      long stream) {
    long cache = enter();
    try {
      Arguments arguments = args.begin(config);
      try {
        switch (kind) {
          case DECODE_SELECT -> arguments.decode_select(cache, layer, stream);
          case ATTEND -> arguments.attend(cache, layer, stream);
          case DECODE -> arguments.decode(cache, layer, stream);
          case AUDIT -> arguments.audit(cache, layer, result, stream);
        }
      } finally {
        args.end();
      }
    } finally {
      exit();
      Reference.reachabilityFence(owner);
    }
  }

  boolean closed() {
    return calls < 0;
  }

  /** Lets no call in and waits for those inside. An interrupt is kept for later. */
  void shut() {
    CALLS.getAndBitwiseOr(this, CLOSED);
    boolean interrupted = false;
    synchronized (this) {
      while (calls != CLOSED) {
        try {
          wait();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
  }

  /** Frees the native cache; by the Cleaner, once. */
  @Override
  public void run() {
    if (!closed()) {
      LOG.log(System.Logger.Level.WARNING, "a Cache was never closed; its memory is freed now");
    }
    Native.cache_destroy(pointer);
    if (buffers != null) buffers.release();
  }
}
