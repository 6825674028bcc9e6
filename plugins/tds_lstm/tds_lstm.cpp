// The plugin: fields in, loss and metrics out. The network is in encoder and rollout, what it is worth in score.
#include "architecture.hpp"
#include "headroom/model.hpp"
#include "rollout.hpp"
#include "score.hpp"

namespace headroom {
namespace {

class TdsLstm {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_MODEL_BF16 | HR_MODEL_FP16;

  static sdk::OptionList options() { return Architecture::options(); }
  static std::vector<sdk::Input> inputs(const sdk::Options& options) { return Architecture::inputs(options); }

  TdsLstm(const sdk::Options& options, const sdk::Fields& fields)
      : architecture_(Architecture::read(options, fields)), network_(std::make_shared<PoseNetwork>(architecture_)) {}

  torch::nn::Module& module() { return *network_; }

  std::vector<sdk::Output> outputs() const {
    return {{"prediction", HR_PREDICTION, architecture_.unit},
            {"target", HR_TARGET, architecture_.unit},
            {"mask", HR_MASK}};
  }

  std::vector<sdk::Metric> metrics() const { return metric_list(architecture_); }

  sdk::StepOutput step(const sdk::Call& call, const sdk::Batch& batch) {
    const at::Tensor emg = batch.at("emg"), angles = batch.at("joint_angles");
    const int64_t context = architecture_.encoder.left_context, outputs = architecture_.outputs();
    const Scored scored{network_->forward(emg, initial_pose(angles)), angles.narrow(1, context, outputs),
                        mask(batch, angles)};

    const LossSum loss = loss_of(scored, architecture_.loss);
    sdk::StepOutput result{.loss_sum = loss.loss_sum, .weight = loss.weight};
    if (call.wants_outputs())
      result.outputs = {scored.prediction.contiguous(), scored.target.contiguous(), scored.mask};
    if (call.wants_metrics()) result.metrics = metrics_of(scored, architecture_);
    return result;
  }

 private:
  // The target of the first predicted sample. What is not a number there starts from zero: the sequence does not count
  // (or its target makes the loss not a number), and a NaN here would reach the gradients of the others.
  at::Tensor initial_pose(const at::Tensor& angles) const {
    const at::Tensor first = angles.select(1, architecture_.encoder.left_context);
    return architecture_.provide_initial_pos ? torch::nan_to_num(first, 0.0, 0.0, 0.0) : torch::zeros_like(first);
  }

  // A sequence that starts from a pose which is not valid does not count at all.
  at::Tensor mask(const sdk::Batch& batch, const at::Tensor& angles) const {
    const int64_t context = architecture_.encoder.left_context, outputs = architecture_.outputs();
    const at::Tensor valid = batch["valid"];
    if (!valid.defined()) return torch::ones({angles.size(0), outputs}, angles.options().dtype(torch::kBool));
    const at::Tensor counts = valid.narrow(1, context, outputs).ne(0);
    return architecture_.provide_initial_pos ? counts.logical_and(counts.narrow(1, 0, 1)) : counts;
  }

  Architecture architecture_;
  std::shared_ptr<PoseNetwork> network_;
};

}  // namespace
}  // namespace headroom

HEADROOM_PLUGIN(.id = "tds_lstm", .version = "1.0.0",
                .summary = "EMG to hand joint angles: time-depth-separable encoder, LSTM or MLP decoder",
                .interfaces = {headroom::sdk::model<headroom::TdsLstm>()});
