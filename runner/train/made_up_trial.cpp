#include <ATen/DLConvertor.h>
#include <optional>
#include <span>

#include "headroom/sdk/draws.hpp"
#include "memory/cores.hpp"
#include "plugins/made_up.hpp"
#include "train/compute.hpp"
#include "train/model_trial.hpp"
#include "train/precision.hpp"
#include "train/retry.hpp"

namespace headroom {

namespace {

using namespace sdk::literals;

constexpr uint64_t made_up_seed = 0;
constexpr uint64_t made_up_samples = 4;
constexpr int64_t most_made_up_numbers = 1 << 26;  // in all samples

// The experiment that nobody wrote is what Advice goes by.
struct MadeUpModel {
  const Experiment experiment;
  std::optional<Model> model;
};

// What the DLTensors of a batch point to.
struct MadeUpMemory {
  std::vector<at::Tensor> tensors;
  std::vector<std::vector<int64_t>> shapes;
};

std::vector<MadeUpField> fields_for(const Library& library, const OptionValues& options) {
  const NativeOptions native(to_option_table(library.model_torch()->options, library.id()), options);
  std::vector<MadeUpField> fields = made_up_fields(*library.inputs(), library.id(), native.values());
  int64_t numbers = 0;
  for (const MadeUpField& made : fields) numbers += made.field.elements() * static_cast<int64_t>(made_up_samples);
  if (numbers > most_made_up_numbers) {
    throw Error(Exit::does_not_fit, library.id(),
                "the sizes that inputs() names are too large to be made up: " + std::to_string(numbers) +
                    " numbers in " + std::to_string(made_up_samples) + " samples");
  }
  return fields;
}

at::Tensor drawn(const MadeUpField& made, std::span<const uint64_t> keys, uint64_t site,
                 const std::vector<int64_t>& shape) {
  const at::Tensor values = at::empty(shape, at::kDouble);
  double* next = values.data_ptr<double>();
  const auto elements = static_cast<uint64_t>(made.field.elements());
  for (const uint64_t key : keys) {
    for (uint64_t i = 0; i < elements; ++i) *next++ = made.value(key, site, i);
  }
  return values.to(at::toScalarType(made.field.dtype));
}

Batch made_up_batch(const std::vector<MadeUpField>& fields) {
  const OwnerScope scope(Owner::batches);
  const auto memory = std::make_shared<MadeUpMemory>();
  Batch batch;
  for (uint64_t i = 0; i < made_up_samples; ++i) {
    batch.index.push_back(i);
    batch.key.push_back(hr_sample_key(made_up_seed, 0, 0, i));
  }
  for (const MadeUpField& made : fields) {
    std::vector<int64_t> shape = made.field.shape;
    shape.insert(shape.begin(), static_cast<int64_t>(made_up_samples));
    memory->tensors.push_back(drawn(made, batch.key, sdk::site("made up"_site, memory->tensors.size()), shape));
    memory->shapes.push_back(std::move(shape));
    std::vector<int64_t>& kept = memory->shapes.back();  // its numbers stay where they are when `shapes` grows
    batch.fields.push_back({memory->tensors.back().data_ptr(),
                            {kDLCPU, 0},
                            static_cast<int32_t>(kept.size()),
                            made.field.dtype,
                            kept.data(),
                            nullptr,
                            0});
  }
  batch.hold = memory;
  return batch;
}

}  // namespace

std::unique_ptr<ModelTrial> made_up_trial(const Library& library, const OptionValues& options,
                                          const std::string& precision) {
  const int threads = auto_threads();
  at::set_num_threads(threads);
  const std::vector<MadeUpField> made_up = fields_for(library, options);
  std::vector<Field> fields;
  for (const MadeUpField& made : made_up) fields.push_back(made.field);

  const auto made = std::make_shared<MadeUpModel>();
  const at::ScalarType dtype = parameter_dtype(precision);
  const Advice advice(made->experiment, "", /*recomputes=*/false);
  with_one_retry("the model", Owner::parameters, at::kCPU, advice, [&] {
    start_compute_threads(threads);
    torch::manual_seed(made_up_seed);
    Model& model = made->model.emplace(library, options, fields, made_up_seed);
    model.to(at::kCPU, dtype);
    model.autocast(autocast_dtype(precision));
  });
  return std::make_unique<ModelTrial>(std::shared_ptr<Model>(made, &*made->model), at::kCPU, dtype,
                                      made_up_batch(made_up), advice);
}

}  // namespace headroom
