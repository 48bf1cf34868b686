package io.github.librkv;

/**
 * What the selections of some rows miss, over rows and query heads. No rows: all NaN.
 *
 * @param rows rows looked at
 * @param massMean share of the attention mass of all live rows that was selected, mean
 * @param massMin the least share
 * @param promptMassMean share of the whole prompt's mass; NaN in COMPACT storage
 * @param errorMean |out - out of all live rows| / |out of all live rows|, mean
 * @param errorMax the largest
 */
public record AuditResult(
    int rows,
    double massMean,
    double massMin,
    double promptMassMean,
    double errorMean,
    double errorMax) {

  static AuditResult of(NativeAudit a) {
    return new AuditResult(
        a.getRows(),
        a.getMassMean(),
        a.getMassMin(),
        a.getPromptMassMean(),
        a.getErrorMean(),
        a.getErrorMax());
  }
}
