#include "loader_library/opened_loader.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/digest.hpp"
#include "data/data_report.hpp"
#include "data/services.hpp"
#include "memory/process_memory.hpp"
#include "plugins/field_json.hpp"

namespace headroom {

namespace {

Error refused(const std::string& sentence) { return Error(Exit::bad_input, "loader", sentence); }

Experiment load(const LoaderRequest& request) {
  std::vector<Override> keys = request.keys;
  if (request.experiment.empty()) {
    // What every experiment has and no loader needs.
    keys.insert(keys.begin(), {{"experiment.name", "\"loader\""}, {"model.plugin", "\"none\""}});
  }
  Experiment experiment = request.experiment.empty() ? load_keys(keys) : load_experiment(request.experiment, keys);
  if (request.batch_size < 0 || request.batch_size > 1'000'000)
    throw refused("batch_size is " + std::to_string(request.batch_size) + "; it must be from 1 to 1000000");
  if (request.batch_size > 0) {
    experiment.train.batch_size = request.batch_size;
    experiment.train.gradient_accumulation_steps = 1;
  }
  return experiment;
}

OpenedData open(const Experiment& experiment, const LoaderRequest& request) {
  ChosenSource source = choose_source(experiment, request.plugin_dirs);
  return open_data(experiment, std::move(source), make_session(experiment.data));
}

// As the loop's. Nothing is known of how many epochs will be asked for; and a loop of Python still holds a batch when
// it asks for the next.
LoaderOptions options_of(const OpenedData& data, bool training) {
  LoaderOptions options = data.loader_options(training, held_bytes());
  options.extra_slots = 1;
  if (training) options.epochs = -1;
  return options;
}

// In measured units, and how standardised values relate to those.
nlohmann::json fields_json(const std::vector<Field>& fields, const std::vector<FieldStatistics>& statistics) {
  nlohmann::json all = fields_to_json(fields);
  for (nlohmann::json& field : all) {
    field.erase("normalize");
    field["mean"] = field["std"] = nullptr;
    for (const FieldStatistics& of_field : statistics) {
      if (of_field.field != field["name"]) continue;
      field["mean"] = of_field.mean;
      field["std"] = of_field.std;
    }
  }
  return all;
}

}  // namespace

OpenedLoader::OpenedLoader(const LoaderRequest& request)
    : experiment_(load(request)),
      split_name_(request.split),
      training_(request.training.value_or(request.split == "train")),
      data_(open(experiment_, request)),
      input_(loader_input(data_, found_statistics(), [this](const std::string& line) { notes_.push_back(line); })),
      options_(options_of(data_, training_)),
      loader_(input_.source, split(), input_.applied, options_),
      description_(describe().dump()) {}

const Split& OpenedLoader::split() const {
  const Split* split = data_.splits.find(split_name_);
  if (split == nullptr || split->length() == 0)
    throw refused("the data has no split '" + split_name_ + "' with samples: use train, val or test");
  return *split;
}

// Measuring may read the whole training split, so what is wrong with the request comes first.
Normalizer OpenedLoader::found_statistics() {
  (void)split();
  const DataSection& data = experiment_.data;
  for (const Inert& inert : experiment_.inert)
    if (inert.key.starts_with("data.")) notes_.push_back(inert.key + ": " + inert.why);
  if (training_) {
    for (const std::string& line : {order_line(data, data_.order, data_.stored), order_warning(data, data_.order)})
      if (!line.empty()) notes_.push_back(line);
  }
  FoundStatistics found = find_statistics(data_.statistics_request());
  std::ranges::move(found.lines, std::back_inserter(notes_));
  return std::move(found.normalizer);
}

// All that decides which samples come where, and their values. Batch size, threads and caches do not.
std::string OpenedLoader::order_digest() const {
  const OrderChoice& order = data_.order;
  Digest digest;
  digest.add(data_.content_id)
      .add(options_without_paths(data_.data_table, data_.data_options, data_.source_library.cost_options()));
  digest.add(split_name_).add(data_.splits.json().dump()).add(input_.measured.to_json().dump());
  digest.add(training_ ? "training" : "evaluation");
  if (training_) {
    digest.add(std::to_string(experiment_.experiment.seed)).add(order.name);
    digest.add(std::to_string(loader_.samples_per_epoch()));
    if (order.shuffle == Shuffle::grouped)
      digest.add(std::to_string(order.grouping.runs)).add(std::to_string(order.grouping.run_length));
  }
  return digest.hex();
}

nlohmann::json OpenedLoader::describe() const {
  const int64_t batch_bytes = slot_bytes(data_.source->fields(), options_.slot_samples());
  return {{"source", data_.source->id()},
          {"split", split_name_},
          {"training", training_},
          {"batch_size", loader_.batch_size()},
          {"samples", loader_.samples_per_epoch()},
          {"batches", loader_.batches_per_epoch()},
          {"fields", fields_json(data_.source->fields(), input_.measured.statistics())},
          {"order", order_digest()},
          {"slots", slot_count(options_, batch_bytes)},
          {"slot_bytes", batch_bytes},
          {"notes", notes_}};
}

void OpenedLoader::seek(uint64_t epoch, uint64_t position) {
  const auto size = static_cast<uint64_t>(loader_.batch_size());
  if (position % size != 0) {
    throw refused("position " + std::to_string(position) +
                  " is inside a batch: with batch_size = " + std::to_string(size) + " batches begin at its multiples");
  }
  if (position > 0 && position >= loader_.samples_per_epoch()) {
    throw refused("position " + std::to_string(position) + " is beyond the " +
                  std::to_string(loader_.samples_per_epoch()) + " samples of an epoch");
  }
  if (epoch == epoch_ && position == position_) return;
  epoch_ = epoch;
  position_ = position;
  is_there_ = false;
}

OpenedLoader::Outcome OpenedLoader::next(std::chrono::milliseconds most, std::shared_ptr<const ExportedBatch>& out) {
  // Training reads ahead into the next epoch, as the loop does.
  if (!is_there_) loader_.seek(training_ ? epoch_ : 0, position_, /*continuous=*/training_);
  is_there_ = false;  // where it throws
  const auto end = std::chrono::steady_clock::now() + most;
  while (true) {
    if (!loader_.wait_until(end)) {
      is_there_ = true;
      return Outcome::waiting;
    }
    std::optional<Batch> batch = loader_.next();
    if (!batch) {
      ++epoch_;
      position_ = 0;
      is_there_ = training_;
      return Outcome::epoch_end;
    }
    const bool is_empty = batch->count() == 0;
    if (!is_empty) out = std::make_shared<const ExportedBatch>(std::move(*batch), held_);
    position_ += static_cast<uint64_t>(loader_.batch_size());
    if (is_empty) continue;
    is_there_ = true;
    return Outcome::batch;
  }
}

}  // namespace headroom
