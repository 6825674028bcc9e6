#include "train/predict_pass.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>

#include "train/signals.hpp"
#include "train/traces.hpp"

namespace headroom {

namespace {

void pass_batch(const Setup& setup, const Batch& batch, Retry& retry, Traces& traces, const PredictPass& pass) {
  (void)in_micro_batches(batch, retry, [&](int64_t first, int64_t count) {
    Outputs outputs;
    const bool fits = attempt_with_traces(traces, retry, "a prediction", count, [&] {
      Outputs answer = pass.ask(MicroBatchTensors(batch, first, count, setup.device, setup.dtype));
      for (at::Tensor& output : answer) output = output.defined() ? output.to(at::kCPU).contiguous() : output;
      outputs = std::move(answer);
    });
    if (fits) pass.take(batch, first, count, outputs);
    return fits ? PassEnd::done : PassEnd::again;
  });
  retry.succeeded();
}

}  // namespace

size_t prediction_output(const Model& model) {
  const auto& outputs = model.outputs();
  return static_cast<size_t>(std::ranges::find(outputs, HR_PREDICTION, &OutputInfo::role) - outputs.begin());
}

std::function<Outputs(const MicroBatchTensors&)> asking_without(size_t target, const Setup& setup,
                                                                int64_t trained_steps) {
  return [=, &setup](const MicroBatchTensors& tensors) {
    Outputs shown = tensors.fields;
    shown[target].reset();
    return setup.model->predict(trained_steps, tensors.keys, shown);
  };
}

bool run_pass(const Setup& setup, PredictInput& input, const PredictPass& pass) {
  const at::NoGradGuard no_grad;
  Retry retry(setup.micro_batch(), setup.device, setup.advice(),
              [](const Shortage& shortage, const std::string& action) {
                spdlog::warn("out of memory in {}, micro-batch {}: {}", shortage.doing, shortage.micro_batch, action);
              });
  std::optional<Traces> traces;
  with_one_retry("what a prediction may change", Owner::metrics, setup.device, setup.advice(),
                 [&] { traces.emplace(*setup.model, setup.device); });
  const auto batch_size = static_cast<uint64_t>(setup.data.experiment.train.batch_size);
  for (uint64_t first = 0;; first += batch_size) {
    if (stop_requested() != Exit::ok) return false;
    const auto batch = read_batch(
        retry, [&] { return input.read(first); }, [] {});
    if (!batch) return true;
    pass_batch(setup, *batch, retry, *traces, pass);
  }
}

}  // namespace headroom
