package io.github.librkv;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Threads, the garbage collector, and memory over many lives. */
@Timeout(600)
class LifetimesTest {
  /** Runs a body in a thread of its own and keeps what it threw. */
  private static final class Worker extends Thread {
    interface Body {
      void run() throws Exception;
    }

    private final AtomicReference<Throwable> thrown = new AtomicReference<>();

    Worker(Body body) {
      super(null, null, "worker");
      this.body = body;
      start();
    }

    private final Body body;

    @Override
    public void run() {
      try {
        body.run();
      } catch (Throwable e) {
        thrown.set(e);
      }
    }

    Throwable end() throws InterruptedException {
      join();
      return thrown.get();
    }
  }

  @Test
  void closeDuringCallsOfAnotherThread() throws InterruptedException {
    for (int round = 0; round < 100; ++round) {
      Cache cache = Rig.filled();
      DecodeArgs args = Rig.step(0, Rig.S).out(Rig.out(1));
      CountDownLatch running = new CountDownLatch(1);
      Worker worker =
          new Worker(
              () -> {
                while (true) {
                  cache.decode(0, args);
                  running.countDown();
                }
              });
      running.await();
      cache.close();
      Rig.refused(Status.BAD_STATE, () -> cache.decode(0, args), "closed");
      Throwable end = worker.end();
      assertTrue(end instanceof RkvException, String.valueOf(end));
      assertEquals(Status.BAD_STATE, ((RkvException) end).status(), end.getMessage());
    }
  }

  @Test
  void closeWaitsForTheCallInside() throws InterruptedException {
    Cache cache = Rig.filled();
    CacheState state = new CacheState(0, null);
    state.enter();
    CountDownLatch closing = new CountDownLatch(1);
    Worker closer =
        new Worker(
            () -> {
              closing.countDown();
              Thread.currentThread().interrupt(); // does not cut the wait short
              state.shut();
              assertTrue(Thread.interrupted(), "the interrupt is kept");
            });
    closing.await();
    while (!state.closed()) Thread.onSpinWait();
    Rig.refused(Status.BAD_STATE, state::enter, "closed");
    closer.join(50);
    assertTrue(closer.isAlive(), "waits while a call is inside");
    state.exit();
    assertNull(closer.end());
    cache.close();
  }

  @Test
  void twoThreadsOnOneCache() throws InterruptedException {
    // A prompt of some size, so that the calls meet.
    int prompt = 4000;
    CacheConfig config = Rig.config().maxPromptTokens(prompt).build();
    Tensor q = Rig.tensor(GoldenValues.Q, 0, prompt - 40, 40);
    Tensor k = Rig.tensor(GoldenValues.K, 0, 0, prompt);
    Tensor v = Rig.tensor(GoldenValues.V, 0, 0, prompt);
    try (Cache cache = new Cache(config)) {
      AtomicReference<RkvException> refused = new AtomicReference<>();
      cache.open(1);
      Worker.Body body =
          () -> {
            while (refused.get() == null) {
              try {
                cache.prefill(1, 0, prompt - 40, prompt, q, k, v);
                cache.closeSequence(1);
                cache.open(1);
              } catch (RkvException e) {
                // The other thread may have closed or prefilled the sequence in between.
                assertEquals(Status.BAD_STATE, e.status(), e.getMessage());
                if (e.getMessage().contains("in use")) refused.set(e);
              }
            }
          };
      Worker first = new Worker(body);
      Worker second = new Worker(body);
      assertNull(first.end());
      assertNull(second.end());
      cache.open(0); // and it still works
    }
  }

  @Test
  void argumentsServeOneThreadAtATime() {
    DecodeArgs args = Rig.step(0, Rig.S);
    args.begin(Rig.config().build()); // as a call of another thread would
    Rig.refused(Status.BAD_STATE, () -> args.row(0, 0, 1), "another thread");
    Rig.refused(Status.BAD_STATE, () -> args.q(null), "another thread");
    try (Cache cache = Rig.filled()) {
      Rig.refused(Status.BAD_STATE, () -> cache.decode(0, args), "another thread");
      args.end();
      cache.decode(0, args.out(Rig.out(1)));
    }
  }

  @Test
  void tenThousandLivesInBoundedMemory() throws IOException {
    CacheConfig config = Rig.config().build();
    for (int life = 0; life < 500; ++life) new Cache(config).close();
    System.gc();
    long before = residentBytes();
    for (int life = 0; life < 10_000; ++life) {
      try (Cache cache = new Cache(config)) {
        cache.open(0);
      }
    }
    System.gc();
    long grown = residentBytes() - before;
    assertTrue(grown < 48L << 20, grown + " bytes more");
  }

  private static long residentBytes() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) return 1024 * Long.parseLong(line.replaceAll("\\D", ""));
    }
    throw new IOException("no VmRSS");
  }

  @Test
  void callsUnderCollection() throws InterruptedException {
    float[] want;
    try (Cache cache = Rig.filled()) {
      Tensor out = Rig.out(1);
      cache.decode(0, Rig.step(0, Rig.S).out(out));
      want = Rig.floats(out);
    }
    Thread main = Thread.currentThread();
    Worker collector =
        new Worker(
            () -> {
              List<byte[]> garbage = new ArrayList<>();
              while (main.isAlive() && !Thread.interrupted()) {
                for (int i = 0; i < 200; ++i) garbage.add(new byte[10_000]);
                garbage.clear();
                System.gc();
              }
            });
    try {
      for (int round = 0; round < 150; ++round) {
        // Nothing holds the cache's buffers, the tensors or their memory but the objects in use.
        CacheConfig config = Rig.config().build();
        Cache cache = new Cache(config, Buffers.allocate(CacheMemory.of(config)));
        cache.open(0);
        Rig.prefill(cache, 0, 0);
        DecodeArgs args = Rig.step(0, Rig.S);
        Tensor out = Rig.out(1);
        cache.decode(0, args.out(out));
        assertArrayEquals(want, Rig.floats(out));
        cache.close();
      }
    } finally {
      collector.interrupt();
    }
    assertNull(collector.end());
  }

  @Test
  void whatWasNeverClosedIsFreedAndLogged() throws InterruptedException {
    List<String> logged = new ArrayList<>();
    Handler handler =
        new Handler() {
          @Override
          public void publish(LogRecord record) {
            synchronized (logged) {
              logged.add(record.getLevel() + " " + record.getMessage());
            }
          }

          @Override
          public void flush() {}

          @Override
          public void close() {}
        };
    Logger logger = Logger.getLogger("io.github.librkv");
    logger.addHandler(handler);
    logger.setUseParentHandlers(false);
    CacheConfig config = Rig.config().build();
    Buffers buffers = Buffers.allocate(CacheMemory.of(config));
    try {
      new Cache(config).close(); // says nothing
      leave(config, buffers);
      boolean freed = false;
      for (int wait = 0; wait < 500 && !freed; ++wait) {
        System.gc();
        Thread.sleep(10);
        synchronized (logged) {
          freed = !logged.isEmpty();
        }
      }
      assertEquals(List.of("WARNING a Cache was never closed; its memory is freed now"), logged);
    } finally {
      logger.removeHandler(handler);
      logger.setUseParentHandlers(true);
    }
    boolean again = false;
    for (int wait = 0; wait < 500 && !again; ++wait) {
      try (Cache cache = new Cache(config, buffers)) {
        again = !cache.closed();
      } catch (RkvException e) {
        Thread.sleep(10); // the line is logged just before the buffers come back
      }
    }
    assertTrue(again, "the buffers are free again");
  }

  /** Makes a cache and forgets it. */
  private static void leave(CacheConfig config, Buffers buffers) {
    assertFalse(new Cache(config, buffers).closed());
  }
}
