#include "train/export_script.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/DLConvertor.h>
#include <cstdio>

#include "data/field_statistics.hpp"
#include "data/slots.hpp"
#include "headroom/random.h"
#include "infer/torchscript.hpp"
#include "record/run_folder.hpp"
#include "train/run_data.hpp"
#include "train/run_memory.hpp"
#include "train/signals.hpp"

namespace headroom {

namespace {

// More than one, to see whether the program takes any number of samples.
constexpr int64_t several = 3;

// Standardised values as they were measured.
at::Tensor measured_from(const at::Tensor& values, const Field& field, std::span<const FieldStatistics> statistics) {
  std::vector<double> mean, std;
  for (const Channel& channel : measured_channels(field, statistics, field.channel_axis)) {
    mean.push_back(channel.mean);
    std.push_back(channel.std);
  }
  const auto beside = [&](const std::vector<double>& numbers) {
    return torch::tensor(numbers, at::kDouble).view(beside_batch(field));
  };
  return values.to(at::kDouble).mul(beside(std)).add(beside(mean)).to(at::toScalarType(field.dtype));
}

// Like those that were measured: of the same mean and spread, channel by channel.
at::Tensor made_up_values(const Field& field, std::span<const FieldStatistics> statistics, int64_t samples,
                          at::Generator& generator) {
  std::vector<int64_t> shape = field.shape;
  shape.insert(shape.begin(), samples);
  const at::ScalarType type = at::toScalarType(field.dtype);
  if (at::isFloatingType(type))
    return measured_from(at::randn(shape, generator, at::TensorOptions(at::kDouble)), field, statistics);
  // Bytes may be pixels; other integers may be places in a table, whose size nobody tells.
  return at::randint(0, type == at::kByte ? 256 : 2, shape, generator, at::TensorOptions(at::kLong)).to(type);
}

ScriptTrial drawn_trial(const RunData& data, std::span<const FieldStatistics> statistics, int64_t samples,
                        uint64_t seed) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  ScriptTrial trial{"made-up samples", {}};
  for (const Field& field : data.source->fields())
    trial.inputs.push_back(made_up_values(field, statistics, samples, generator));
  return trial;
}

// The first ones that can be read of a split that the model was not trained on, where there is one.
ScriptTrial real_trial(const RunData& data, int64_t samples) {
  const Split& split = data.splits.val.length() > 0 ? data.splits.val : data.splits.train;
  const std::vector<Field>& fields = data.source->fields();
  Slot slot(fields, samples);
  Reader reader = data.source->reader();
  int64_t count = 0;
  for (uint64_t i = 0; i < split.length() && count < samples; ++i) {
    const uint64_t index = split.source_index(i),
                   key = hr_sample_key(data.experiment.experiment.seed, split.source_split(), 0, index);
    try {
      reader.read(split.source_split(), {&index, 1}, {&key, 1}, /*augment=*/false, slot.tensors(count, 1));
      ++count;
    } catch (const BadSample&) {
      if (i + 1 == split.length() && count == 0) throw;
    }
  }
  const auto arrays = slot.tensors(0, count);
  ScriptTrial trial{"samples of the run's data", {}};
  for (size_t i = 0; i < fields.size(); ++i) {
    std::vector<int64_t> shape = fields[i].shape;
    shape.insert(shape.begin(), count);
    const at::Tensor values = at::from_blob(arrays[i].data, shape, at::toScalarType(fields[i].dtype));
    // What the source has standardised is taken back.
    trial.inputs.push_back(values.is_floating_point() ? measured_from(values, fields[i], {}) : values.clone());
  }
  return trial;
}

ScriptTrial first_of(const ScriptTrial& trial) {
  ScriptTrial first{trial.what, {}};
  for (const at::Tensor& tensor : trial.inputs) first.inputs.push_back(tensor.narrow(0, 0, 1));
  return first;
}

void print(const ExportRequest& request, const TrainedModel& trained, const WrittenScript& written) {
  const auto listing = [](const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  };
  std::printf("wrote %s: forward(%s) -> %s, of step %lld, for %s; off by %.1e of the largest value at most\n",
              request.out.c_str(), listing(written.arguments).c_str(), listing(written.outputs).c_str(),
              static_cast<long long>(trained.step),
              written.any_count ? "any number of samples" : "one sample at a time", written.largest_difference);
}

}  // namespace

Exit export_script(const ExportRequest& request) {
  const TrainedModel trained = TrainedModel::of_run(request.run, request.checkpoint);
  const Experiment experiment = load_experiment(run_path(request.run) / "experiment.toml");
  install_stop_signals();
  const RunMemory memory(experiment, /*needed_bytes=*/0);
  if (memory.cancelled()) return stop_requested();
  const RunData data = prepare_data(experiment, request.plugin_dirs, /*trains=*/false);
  Inference inference(trained, data.model_library, at::kCPU);
  const std::vector<FieldStatistics> statistics = statistics_from_json(trained.normalizer);
  const ScriptTrial real = real_trial(data, several);
  const std::vector<ScriptTrial> trials = {drawn_trial(data, statistics, 1, 1), drawn_trial(data, statistics, 1, 2),
                                           first_of(real), real, drawn_trial(data, statistics, several, 3)};
  if (stop_requested() != Exit::ok) return stop_requested();
  print(request, trained, write_torchscript(inference, trained, trials, request.out));
  return Exit::ok;
}

}  // namespace headroom
