/* Keyed randomness: every draw is a pure function of (key, site, element), so masks and crops are equal under any split, retry,
 * recomputation, resume or number of processes. Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
 * 1, 2, 3" (SC11). C11, header-only; both sides of the boundary use the same words. */
#ifndef HEADROOM_RANDOM_H
#define HEADROOM_RANDOM_H

#include <stdint.h>

/* Block `block` of stream (key, site): four uniform 32-bit words. */
static inline void hr_philox(uint64_t key, uint64_t site, uint64_t block, uint32_t out[4]) {
  uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)site, c3 = (uint32_t)(site >> 32);
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
    const uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

/* One 64-bit word of stream (key, site). */
static inline uint64_t hr_philox64(uint64_t key, uint64_t site, uint64_t block) {
  uint32_t words[4];
  hr_philox(key, site, block, words);
  return ((uint64_t)words[1] << 32) | words[0];
}

/* Uniform in [0, 1): 24 bits, exact in float; 53 bits in double. */
static inline float hr_uniform_f32(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }
static inline double hr_uniform_f64(uint64_t word) { return (double)(word >> 11) * 0x1p-53; }

/* Uniform integer in [0, bound), bound > 0. */
static inline uint64_t hr_uniform_below(uint64_t key, uint64_t site, uint64_t bound) {
  return (uint64_t)(hr_uniform_f64(hr_philox64(key, site, 0)) * (double)bound);
}

/* The key of one sample. Evaluation always uses epoch 0, so that validation repeats itself. */
static inline uint64_t hr_sample_key(uint64_t seed, uint32_t split, uint64_t epoch, uint64_t index) {
  const uint64_t stream = hr_philox64(seed, 0x6865616472006B65u + split, epoch);
  return hr_philox64(stream, 0x73616D706C65u, index);
}

#endif
