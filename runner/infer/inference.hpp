// infer/: a trained model asked without a trainer and without the run's data. Start here: measured values in,
// predictions out in the units that were measured. torchscript.hpp writes it as a program, stored_tensor.hpp makes
// tensors of what is stored; infer.cpp is the C ABI of libheadroom_infer. Standardising and its reverse are operations
// of LibTorch here, so that a trace has them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "data/field_statistics.hpp"
#include "plugins/torch_model.hpp"
#include "record/trained_model.hpp"

namespace headroom {

// [control], in one thread; models of their own in threads of their own.
class Inference {
 public:
  struct Output {
    std::string name, unit;
    hr_role role = HR_AUX;
    bool given = false;           // false: it needs the target, which predictions do without
    std::optional<size_t> field;  // the input whose channels and units it has; nullopt: `unit`
    DLDataType dtype{};           // where it is given
    std::vector<int64_t> shape;   // of one sample, where it is given
  };

  // Builds the model and loads its weights, then asks it once with zeros, for the shapes of its outputs. `library` is
  // the plugin that `trained` names. Error(bad_input) where the two do not suit.
  Inference(const TrainedModel& trained, const Library& library, const at::Device& device);

  const std::string& id() const { return model_->id(); }
  Model& model() { return *model_; }
  // In the order of run(): shapes, units and channels of what was measured.
  const std::vector<Field>& inputs() const { return inputs_; }
  // What the model predicts from the other inputs (headroom.predict/1), and is not shown; nullopt: it has no such
  // interface, and its step is asked, which may need all of them.
  std::optional<size_t> target() const { return target_; }
  const std::vector<Output>& outputs() const { return outputs_; }

  // A tensor an input on the CPU, [samples, shape...]; undefined: not given. A tensor an output on the CPU, undefined
  // where it is not given; none shares memory with an input. Without gradients. Error(bad_input) where the inputs do
  // not suit.
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs);

 private:
  // measured = value * std + mean; the tensors spread over a batch of the field.
  struct Scale {
    at::Tensor mean, std, inverse_std;
  };
  static std::optional<Scale> scale_of(const std::vector<Channel>& channels, const std::vector<int64_t>& spread);
  void find_scales(std::span<const FieldStatistics> statistics);
  void load(const TrainedModel& trained);
  int64_t require_suitable(std::span<const at::Tensor> inputs) const;
  std::vector<at::Tensor> standardised(std::span<const at::Tensor> inputs) const;
  std::vector<at::Tensor> ask(std::span<const uint64_t> keys, std::span<const at::Tensor> fields);
  at::Tensor as_measured(const at::Tensor& prediction) const;
  void describe_outputs();

  std::vector<Field> inputs_;
  at::Device device_;
  at::ScalarType dtype_;
  uint64_t seed_;
  int64_t step_;
  std::unique_ptr<Model> model_;
  std::optional<size_t> target_;
  std::vector<std::optional<Scale>> scales_;  // of each input; nullopt: as measured
  std::optional<size_t> predicted_;           // the output that is of target_
  std::optional<Scale> predicted_scale_;
  std::vector<Output> outputs_;
};

}  // namespace headroom
