#include "train/evaluate.hpp"

#include "memory/budget.hpp"
#include "train/micro_batches.hpp"

namespace headroom {

namespace {

// What a pass over a split works with.
struct Pass {
  const Setup& setup;
  Retry& retry;
  StepSums &staged, &sums;
  ForwardSnapshot& snapshot;
};

void add_micro_batch(const Pass& pass, const Batch& batch, int64_t first, int64_t count, int64_t step,
                     bool want_outputs, Examples* examples) {
  const Setup& setup = pass.setup;
  const MicroBatchTensors tensors(batch, first, count, setup.device, setup.dtype);
  const uint64_t position = batch.first + static_cast<uint64_t>(first);
  const bool shown = examples != nullptr && examples->wants(position, static_cast<uint64_t>(count));
  StepResult result = setup.model->step(HR_EVAL, step, tensors.keys, tensors.fields, want_outputs || shown);
  if (shown) examples->take(position, tensors.fields, result.outputs);
  // Outputs that only the examples wanted would widen the sample of metrics.mode = "sampled".
  if (!want_outputs) result.outputs.clear();
  // What may run out of memory is added here first.
  pass.staged.zero();
  pass.staged.add(result);
  const EssentialAllocations essential;  // the sums take all of a micro-batch or nothing
  pass.sums.add(pass.staged);
}

void add_batch(const Pass& pass, const Batch& batch, int64_t step, bool want_outputs, Examples* examples) {
  (void)in_micro_batches(batch, pass.retry, [&](int64_t first, int64_t count) {
    const bool fits = attempt_with_snapshot(pass.snapshot, pass.retry, "evaluation", count, [&] {
      add_micro_batch(pass, batch, first, count, step, want_outputs, examples);
    });
    if (!fits) examples = nullptr;  // a picture on a page is worth no memory a run is short of
    return fits ? PassEnd::done : PassEnd::again;
  });
  pass.retry.succeeded();
}

}  // namespace

std::optional<StepSums> evaluate(const Setup& setup, Loader& loader, int64_t step, Retry& retry,
                                 const std::function<bool(int64_t done)>& stop, Examples* examples) {
  at::NoGradGuard no_grad;
  std::optional<StepSums> sums, staged;
  std::optional<ForwardSnapshot> snapshot, before;
  with_one_retry("the sums of an evaluation", Owner::metrics, setup.device, setup.advice(), [&] {
    sums.emplace(setup.model->metrics().size(), setup.device, setup.output_metrics());
    staged.emplace(setup.model->metrics().size(), setup.device, setup.output_metrics());
    snapshot.emplace(*setup.model, setup.device);
    // Of when the evaluation began; `snapshot` is of each micro-batch.
    before.emplace(*setup.model, setup.device);
    before->take();
  });
  const Pass pass{setup, retry, *staged, *sums, *snapshot};
  const MetricSample sample = setup.metric_sample(loader, /*training=*/false);
  const int64_t micro_batch = retry.size();
  const auto as_before = [&] {  // it begins anew when the run goes on
    before->restore();
    retry.micro_batch().restore(micro_batch);
  };
  // Always epoch 0: evaluations see the same samples in the same order.
  loader.seek(0);
  int64_t done = 0;
  try {
    // `done` batches were delivered: the one that could not be read begins behind them.
    const auto seek_back = [&] { loader.seek(0, static_cast<uint64_t>(done * loader.batch_size())); };
    while (const auto batch = read_batch(
               retry, [&] { return loader.next(); }, seek_back)) {
      const bool want_outputs = sample.contains(static_cast<uint64_t>(done));
      if (stop(++done)) {
        as_before();
        return std::nullopt;
      }
      add_batch(pass, *batch, step, want_outputs, examples);
    }
  } catch (const TakenByOthers&) {
    as_before();
    throw;
  }
  retry.restore_speed();
  return sums;
}

}  // namespace headroom
