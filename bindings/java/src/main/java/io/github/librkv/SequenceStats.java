package io.github.librkv;

/**
 * State of one layer of one sequence. All 0 before its prefill.
 *
 * @param turn 0 before prefill
 * @param windowRows query rows that scored the prompt; 0 where nothing had to go
 * @param fault status of the last row refused on the device, 0 = none
 * @param nonfinite an inf or NaN was met in the logits
 * @param saturated an 8-bit summary saturated
 * @param position the length: the next append
 * @param maxPosition S + max_new, exclusive
 * @param prompt S of the last turn
 * @param kept prompt tokens kept per KV head
 * @param generated tokens appended since
 * @param pages pages of the live rows
 * @param kBytes keys in use, all KV heads
 * @param vBytes values in use
 * @param summaryBytes page summaries in use
 * @param indexBytes positions in use
 * @param fullKvBytes this length, uncompressed
 * @param bytesReadPerStep summaries and selected rows
 * @param plan the sequence's plan
 */
public record SequenceStats(
    int turn,
    int windowRows,
    int fault,
    boolean nonfinite,
    boolean saturated,
    long position,
    long maxPosition,
    long prompt,
    long kept,
    long generated,
    long pages,
    long kBytes,
    long vBytes,
    long summaryBytes,
    long indexBytes,
    long fullKvBytes,
    long bytesReadPerStep,
    Plan plan) {

  static SequenceStats of(NativeStats s, NativePlan plan) {
    return new SequenceStats(
        s.getTurn(),
        s.getWindowRows(),
        s.getFault(),
        s.getNonfinite() != 0,
        s.getSaturated() != 0,
        s.getPosition(),
        s.getMaxPosition(),
        s.getPrompt(),
        s.getKept(),
        s.getGenerated(),
        s.getPages(),
        s.getKBytes(),
        s.getVBytes(),
        s.getSummaryBytes(),
        s.getIndexBytes(),
        s.getFullKvBytes(),
        s.getBytesReadPerStep(),
        Plan.of(plan));
  }
}
