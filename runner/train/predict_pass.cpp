#include "train/predict_pass.hpp"

#include <algorithm>
#include <numeric>
#include <spdlog/spdlog.h>

#include "data/slots.hpp"
#include "headroom/random.h"
#include "train/signals.hpp"

namespace headroom {

namespace {

// One slot is enough: a batch is valid until the next one is read.
class RecordedSteps : public PredictInput {
 public:
  RecordedSteps(const Setup& setup, std::unique_ptr<Recording> recording, const Normalizer& normalizer,
                std::vector<uint64_t> starts)
      : seed_(setup.data.experiment.experiment.seed),
        batch_size_(static_cast<uint64_t>(setup.loader_options(/*training=*/false).batch_size)),
        recording_(std::move(recording)),
        normalizer_(normalizer),
        starts_(std::move(starts)) {}

  uint64_t samples() const override { return starts_.size(); }
  uint64_t batch_size() const override { return batch_size_; }

  std::optional<Batch> read(uint64_t first) override {
    const uint64_t count = std::min(batch_size_, samples() - std::min(first, samples()));
    if (count == 0) return std::nullopt;
    if (slot_ == nullptr) {
      std::vector<bool> wanted;
      // A recording may lack a field, such as the one to be predicted: it gets no memory.
      for (const Field& field : recording_->fields()) wanted.push_back(!is_missing(field));
      slot_ =
          std::make_shared<Slot>(recording_->fields(), static_cast<int64_t>(std::min(batch_size_, samples())), wanted);
    }
    Batch batch;
    batch.first = first;
    const auto begin = starts_.begin() + static_cast<std::ptrdiff_t>(first);
    batch.index.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    // As in evaluation: split and epoch 0.
    for (const uint64_t step : batch.index) batch.key.push_back(hr_sample_key(seed_, 0, 0, step));
    const auto fields = slot_->tensors(0, static_cast<int64_t>(count));
    recording_->read(batch.index, fields);
    normalizer_.apply(recording_->fields(), fields);
    batch.fields.assign(fields.begin(), fields.end());
    batch.hold = slot_;
    return batch;
  }

 private:
  uint64_t seed_, batch_size_;
  std::unique_ptr<Recording> recording_;
  Normalizer normalizer_;
  std::vector<uint64_t> starts_;
  std::shared_ptr<Slot> slot_;
};

// A loader for each split of the source that has samples.
class SplitSamples : public PredictInput {
 public:
  SplitSamples(const Setup& setup, std::shared_ptr<const Source> source, const Normalizer& normalizer)
      : source_(source) {
    LoaderOptions options = setup.loader_options(/*training=*/false);
    options.keep_samples.reset();      // each is read once
    options.skip_bad_samples = false;  // a row is a sample
    batch_size_ = static_cast<uint64_t>(options.batch_size);
    for (uint32_t split = 0; split < source->splits().size(); ++split) {
      if (source->length(split) == 0) continue;
      const Split whole(source->splits()[split], split, source->groups(split));
      parts_.push_back({samples_, real_, split, std::make_unique<Loader>(source, whole, normalizer, options)});
      // Every split begins a batch of its own.
      samples_ += (whole.length() + batch_size_ - 1) / batch_size_ * batch_size_;
      real_ += whole.length();
    }
  }

  uint64_t samples() const override { return real_; }
  uint64_t batch_size() const override { return batch_size_; }

  std::optional<Batch> read(uint64_t first) override {
    if (first >= samples_) return std::nullopt;
    // The last part that begins at or before `first`.
    const auto after = std::ranges::upper_bound(parts_, first, {}, &Part::first);
    const Part& part = *(after - 1);
    // In order no seek() is needed within a part; what was read ahead stays.
    if (next_ != first || part.first == first) part.loader->seek(0, first - part.first);
    // Where next() throws, the batch is asked for again, and the loader goes on only after a seek().
    next_.reset();
    std::optional<Batch> batch = part.loader->next();
    next_ = first + batch_size_;
    return batch;
  }

  std::optional<SamplePosition> position(size_t field, uint64_t sample) const override {
    const Part& part = *(std::ranges::upper_bound(parts_, sample, {}, &Part::first_sample) - 1);
    // Of a whole split, in its order.
    const uint64_t index = sample - part.first_sample;
    const auto rows = source_->recorded_rows(static_cast<uint32_t>(field), part.split, index);
    if (!rows) return std::nullopt;
    const std::vector<Group>& groups = source_->groups(part.split);
    const auto group = std::ranges::upper_bound(groups, index, {}, &Group::first) - 1;
    return SamplePosition{part.split, static_cast<uint64_t>(group - groups.begin()), group->name, *rows};
  }

 private:
  struct Part {
    uint64_t first;         // as read() counts, whole batches
    uint64_t first_sample;  // as position() counts
    uint32_t split;
    std::unique_ptr<Loader> loader;
  };
  std::shared_ptr<const Source> source_;
  std::vector<Part> parts_;
  uint64_t batch_size_ = 1, samples_ = 0, real_ = 0;
  std::optional<uint64_t> next_;  // what the loader would give without seek()
};

void require_same_fields(const Source& run, const Source& input, const std::filesystem::path& path) {
  const auto text = [](const Field& field) {
    std::string shape;
    for (const int64_t extent : field.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    return dtype_name(field.dtype) + " [" + shape + "]";
  };
  for (const Field& field : run.fields()) {
    const auto found = std::ranges::find(input.fields(), field.name, &Field::name);
    const std::string there = found == input.fields().end() ? "not there" : text(*found);
    // The place counts too: the model takes fields by their order.
    if (there == text(field) && found - input.fields().begin() == &field - run.fields().data()) continue;
    throw Error(Exit::data, "predict",
                path.string() + ": field '" + field.name + "' is " + there + "; the run was trained with " +
                    text(field) + ", so give a recording of the same kind");
  }
}

void pass_batch(const Setup& setup, const Batch& batch, Retry& retry, ForwardSnapshot& snapshot,
                const PredictPass& pass) {
  (void)in_micro_batches(batch, retry, [&](int64_t first, int64_t count) {
    Outputs outputs;
    const bool fits = attempt_with_snapshot(snapshot, retry, "a prediction", count, [&] {
      Outputs answer = pass.ask(MicroBatchTensors(batch, first, count, setup.device, setup.dtype));
      // Inside the attempt: copies to the CPU take memory as well.
      for (at::Tensor& output : answer) output = output.defined() ? output.to(at::kCPU).contiguous() : output;
      outputs = std::move(answer);
    });
    if (fits) pass.take(batch, first, count, outputs);
    return fits ? PassEnd::done : PassEnd::again;
  });
  retry.succeeded();
}

}  // namespace

std::unique_ptr<PredictInput> recorded_steps(const Setup& setup, std::unique_ptr<Recording> recording,
                                             const Normalizer& normalizer, std::vector<uint64_t> starts) {
  return std::make_unique<RecordedSteps>(setup, std::move(recording), normalizer, std::move(starts));
}

std::unique_ptr<PredictInput> recorded_steps(const Setup& setup, std::unique_ptr<Recording> recording,
                                             const Normalizer& normalizer) {
  std::vector<uint64_t> starts(recording->steps());
  std::iota(starts.begin(), starts.end(), uint64_t{0});
  return recorded_steps(setup, std::move(recording), normalizer, std::move(starts));
}

std::unique_ptr<PredictInput> samples_at(const Setup& setup, const std::filesystem::path& path,
                                         const Normalizer& normalizer) {
  const OptionTable& table = setup.data.data_table;
  const auto option = std::ranges::find_if(
      table, [](const OptionSpec& spec) { return spec.name == "path" && spec.type == OptionType::path; });
  if (option == table.end()) {
    throw Error(Exit::bad_input, "predict",
                "datasource '" + setup.data.source->id() +
                    "' has no option 'path' and offers no " HR_PREDICT ": no other recording can be given to it");
  }
  // The run's own options with another path: the samples are made as they were in training.
  OptionValues values = setup.data.data_options;
  values[static_cast<size_t>(option - table.begin())].value = path.string();
  const auto source = Source::open(setup.data.source_library, values, setup.data.session);
  require_same_fields(*setup.data.source, *source, path);
  return std::make_unique<SplitSamples>(setup, source, normalizer);
}

size_t prediction_output(const Model& model) {
  const auto& outputs = model.outputs();
  return static_cast<size_t>(std::ranges::find(outputs, HR_PREDICTION, &OutputInfo::role) - outputs.begin());
}

std::function<Outputs(const MicroBatchTensors&)> asking_without(size_t target, const Setup& setup,
                                                                int64_t trained_steps) {
  return [=, &setup](const MicroBatchTensors& tensors) {
    Outputs shown = tensors.fields;
    // Not the slot itself: what was recorded is compared with the prediction later.
    shown[target].reset();
    return setup.model->predict(trained_steps, tensors.keys, shown);
  };
}

bool run_pass(const Setup& setup, PredictInput& input, const PredictPass& pass) {
  const at::NoGradGuard no_grad;
  Retry retry(setup.evaluation_micro_batch(), setup.device, setup.advice(),
              [](const Shortage& shortage, const std::string& action) {
                spdlog::warn("out of memory in {}, micro-batch {}: {}", shortage.doing, shortage.micro_batch, action);
              });
  std::optional<ForwardSnapshot> snapshot;
  with_one_retry("what a prediction may change", Owner::metrics, setup.device, setup.advice(),
                 [&] { snapshot.emplace(*setup.model, setup.device); });
  for (uint64_t first = 0;; first += input.batch_size()) {
    if (stop_requested() != Exit::ok) return false;
    const auto batch = read_batch(
        retry, [&] { return input.read(first); }, [] {});
    if (!batch) return true;
    pass_batch(setup, *batch, retry, *snapshot, pass);
  }
}

}  // namespace headroom
