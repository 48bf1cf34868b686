/**
 * RocketKV KV-cache compression for inference engines: the C library librkv under a typed layer.
 *
 * <p>A {@link io.github.librkv.Cache} holds the compressed K and V of several sequences. The engine
 * runs its own model and prompt attention; per layer it hands over the prompt once ({@link
 * io.github.librkv.Cache#prefill}) and asks for the attention output of each decode step ({@link
 * io.github.librkv.Cache#decode}). Data lies in direct buffers or in memory that is named by its
 * address; nothing is copied.
 *
 * <p>Shapes: S prompt tokens, W window rows, Hq query heads, Hkv KV heads, D head size of Q and K,
 * Dv of V. What the library refuses is an {@link io.github.librkv.RkvException} with the library's
 * own text.
 */
package io.github.librkv;
