#include "data/batch_reader.hpp"

#include <algorithm>
#include <chrono>
#include <new>

#include "data/bad_values.hpp"
#include "data/cache_session.hpp"
#include "headroom/random.h"
#include "memory/budget.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

// The same error with the place appended: "[component] sentence (place)".
Error at_place(const Error& problem, const std::string& place) {
  return {problem.exit_code(), problem.component(), std::string(problem.sentence()) + " (" + place + ")"};
}

// The samples of a batch of `count` that this process reads. Of a shuffled batch each process takes neighbours: so it
// mostly meets the same part of the data, and what one has decoded or keeps, the others need not.
std::vector<uint64_t> samples_of(const Order& order, uint64_t first, uint64_t count, const Share& share) {
  std::vector<uint64_t> samples(count);
  for (uint64_t i = 0; i < count; ++i) samples[i] = order.at(first + i);
  if (share.parts == 1) return samples;
  std::ranges::sort(samples);
  return {samples.begin() + static_cast<std::ptrdiff_t>(share.begin(count)),
          samples.begin() + static_cast<std::ptrdiff_t>(share.end(count))};
}

}  // namespace

Batch BatchReader::read(uint64_t epoch, uint64_t first, std::shared_ptr<Slot> slot,
                        std::vector<SkippedSample>& skipped) {
  const LoaderOptions& options = plan_.options;
  const uint64_t whole = std::min(static_cast<uint64_t>(options.batch_size), plan_.samples_per_epoch - first);
  const Order order(options.shuffle, plan_.split.length(), options.seed, epoch, options.grouping);
  Batch batch;
  batch.epoch = epoch;
  batch.first = first + options.share.begin(whole);
  for (const uint64_t sample : samples_of(order, first, whole, options.share)) {
    batch.index.push_back(plan_.split.source_index(sample));
    batch.key.push_back(
        hr_sample_key(options.seed, plan_.split.source_split(), options.augment ? epoch : 0, batch.index.back()));
  }
  const auto began = Clock::now();
  if (!reader_) reader_ = plan_.source->reader();
  // A library whose allocation was refused may report a damaged file instead, see heap_refusals().
  const int64_t refusals = heap_refusals();
  try {
    fill(batch, *slot);
  } catch (const Error& problem) {
    if (problem.exit_code() != Exit::data) throw;
    if (heap_refusals() != refusals) throw std::bad_alloc();  // no sample is bad for want of memory
    read_one_by_one(batch, *slot, problem, skipped);
    normalize(slot->tensors(0, static_cast<int64_t>(batch.count())));
  }
  // fill() standardises too, which is not the source's time.
  times_.source = std::chrono::duration<double>(Clock::now() - began).count() - times_.normalize;
  const auto tensors = slot->tensors(0, static_cast<int64_t>(batch.count()));
  batch.fields.assign(tensors.begin(), tensors.end());
  batch.hold = std::move(slot);
  return batch;
}

bool BatchReader::keeps_samples() const {
  return plan_.kept != nullptr && !cache_of(plan_.source->session())->plugins_use_it;
}

// Copies samples that are kept, and reads the others, neighbours in one call.
void BatchReader::fill(const Batch& batch, Slot& slot) {
  const size_t count = batch.index.size();
  missing_.assign(count, true);
  if (keeps_samples()) {
    for (size_t i = 0; i < count; ++i)
      missing_[i] = !plan_.kept->load(batch.index[i], slot.tensors(static_cast<int64_t>(i), 1));
  }
  for (size_t first = 0, end = 0; first < count; first = end) {
    end = first + 1;
    if (!missing_[first]) continue;
    while (end < count && missing_[end]) ++end;
    read_run(batch, slot, first, end - first);
  }
}

void BatchReader::read_run(const Batch& batch, Slot& slot, size_t first, size_t count) {
  const auto tensors = slot.tensors(static_cast<int64_t>(first), static_cast<int64_t>(count));
  read_from_source(std::span(batch.index).subspan(first, count), std::span(batch.key).subspan(first, count), tensors);
  normalize(tensors);
  if (!keeps_samples()) return;
  // Standardised, so that a hit needs no arithmetic.
  for (size_t i = first; i < first + count; ++i)
    plan_.kept->store(batch.index[i], slot.tensors(static_cast<int64_t>(i), 1));
}

void BatchReader::read_from_source(std::span<const uint64_t> index, std::span<const uint64_t> key,
                                   std::span<const DLTensor> fields) {
  reader_->read(plan_.split.source_split(), index, key, plan_.options.augment, fields);
  if (!plan_.options.skip_not_finite) return;
  if (const auto bad = find_bad_value(plan_.source->fields(), fields))
    throw BadSample(Error(Exit::data, plan_.source->id(), bad->text));
}

void BatchReader::normalize(std::span<const DLTensor> fields) {
  const auto began = Clock::now();
  plan_.normalizer.apply(plan_.source->fields(), fields);
  times_.normalize += std::chrono::duration<double>(Clock::now() - began).count();
}

// The source failed for the batch as a whole, so each sample is read by itself. Those that can be read move up in the
// slot.
void BatchReader::read_one_by_one(Batch& batch, Slot& slot, const Error& problem, std::vector<SkippedSample>& skipped) {
  const bool skip = plan_.options.skip_bad_samples;
  const bool bad_sample = dynamic_cast<const BadSample*>(&problem) != nullptr;
  const int64_t refusals = heap_refusals();
  size_t kept = 0;
  for (size_t i = 0; i < batch.index.size(); ++i) {
    const std::span index(&batch.index[i], 1), key(&batch.key[i], 1);
    try {
      read_from_source(index, key, slot.tensors(static_cast<int64_t>(kept), 1));
      batch.index[kept] = batch.index[i];
      batch.key[kept] = batch.key[i];
      ++kept;
    } catch (const BadSample& bad) {
      if (heap_refusals() != refusals) throw std::bad_alloc();
      const Error located = at_place(bad, plan_.split.place_of(batch.index[i]));
      if (!skip) throw located;
      skipped.push_back({batch.first + i, located.what()});
    } catch (const Error& other) {
      throw at_place(other, plan_.split.place_of(batch.index[i]));
    }
  }
  // Nothing failed the second time, or something else did: only a bad sample may be passed over.
  if (!bad_sample || !skip)
    throw at_place(problem,
                   "among " + std::to_string(batch.index.size()) + " samples of split '" + plan_.split.name() + "'");
  batch.index.resize(kept);
  batch.key.resize(kept);
}

}  // namespace headroom
