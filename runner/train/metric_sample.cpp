#include "train/metric_sample.hpp"

#include "headroom/random.h"

namespace headroom {

namespace {

constexpr uint64_t metrics_site = 0x6D657472696373;  // "metrics": apart from the order of the epoch's samples

}  // namespace

MetricSample::MetricSample(uint64_t batches, uint64_t wanted, uint64_t seed, uint64_t epoch)
    : wanted_(wanted), order_(Shuffle::global, batches, hr_philox64(seed, metrics_site, 0), epoch) {}

// The batches whose place in a random order is among the first: a permutation has just as many of them.
bool MetricSample::contains(uint64_t batch) const { return batch < order_.length() && order_.at(batch) < wanted_; }

}  // namespace headroom
