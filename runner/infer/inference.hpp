// infer/: inference with a trained model, without a trainer and without the run's data. Start here: an Inference takes
// measured values and returns predictions in measured units. torchscript.hpp writes it as a TorchScript program,
// stored_tensor.hpp makes tensors of stored bytes, infer.cpp is the C ABI of libheadroom_infer. Standardising and its
// inverse are LibTorch operations here, so that a trace contains them.
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

// The standardisation of a field; the tensors broadcast over a batch of it.
struct Scale {
  at::Tensor mean, std, inverse_std;
  // Standardises in float64, as a run's loader does, so the values are bit-equal.
  at::Tensor standardised(const at::Tensor& values) const;
  at::Tensor measured(const at::Tensor& values) const;
};
// nullopt: the field is not standardised. `spread`: the shape of the tensors, see beside_batch().
std::optional<Scale> make_scale(const std::vector<Channel>& channels, const std::vector<int64_t>& spread);

// [control], on one thread; several objects may be used on a thread each.
class Inference {
 public:
  struct Output {
    std::string name, unit;
    hr_role role = HR_AUX;
    bool given = false;           // false: it needs the target, which a prediction has not
    std::optional<size_t> field;  // the input whose channels and units it has; nullopt: `unit`
    DLDataType dtype{};           // where it is given
    std::vector<int64_t> shape;   // of one sample, where it is given
  };

  // Builds the model, loads its weights, and runs it once on zeros to learn the shapes of its outputs. `library`: the
  // plugin that `trained` names. Error(bad_input) where the two do not match.
  Inference(const TrainedModel& trained, const Library& library, const at::Device& device);

  const std::string& id() const { return model_->id(); }
  Model& model() { return *model_; }
  // The inputs in the order of run(): shapes, units and channels as measured.
  const std::vector<Field>& inputs() const { return inputs_; }
  // The input that the model predicts from the others (headroom.predict/1), and which is not passed to it. nullopt: the
  // plugin lacks that interface; the model's step is called, which may need all inputs.
  std::optional<size_t> target() const { return target_; }
  const std::vector<Output>& outputs() const { return outputs_; }

  // `inputs`: one tensor for each input, on the CPU, [samples, shape...]; undefined: not given. Returns one tensor for
  // each output, on the CPU; undefined where it is not given. None shares memory with an input. Without gradients.
  // Error(bad_input) where the inputs do not match.
  std::vector<at::Tensor> run(std::span<const at::Tensor> inputs);

 private:
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
