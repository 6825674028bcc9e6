#include "config/rules.hpp"

#include <algorithm>
#include <cmath>

#include "config/keys.hpp"
#include "config/literals.hpp"
#include "config/sentences.hpp"
#include "error.hpp"

namespace headroom {

namespace {

// No place where the value is a default: the sentence comes without one.
toml::source_region source_of(const toml::table& document, std::string_view path) {
  const auto found = document.at_path(path);
  return found ? found.node()->source() : toml::source_region{};
}

void check_warm_up(const Experiment& experiment, const toml::table& document) {
  const ScheduleSection& schedule = experiment.train.schedule;
  if (!why_idle(experiment, "train.schedule.warmup_epochs").empty()) return;
  if (schedule.warmup_epochs > 0 && schedule.warmup_steps > 0) {
    refuse(source_of(document, "train.schedule.warmup_steps"),
           "train.schedule.warmup_steps is " + std::to_string(schedule.warmup_steps) +
               " while train.schedule.warmup_epochs is " + number_text(schedule.warmup_epochs) +
               "; only one of the two may be set: make the other 0");
  }
  // In epochs only: how many steps an epoch has is known with the data.
  if (schedule.warmup_epochs > 0 && schedule.warmup_epochs >= static_cast<double>(experiment.train.epochs)) {
    refuse(source_of(document, "train.schedule.warmup_epochs"),
           "train.schedule.warmup_epochs is " + number_text(schedule.warmup_epochs) + " but train.epochs is " +
               std::to_string(experiment.train.epochs) +
               "; warm-up must end before training does: lower it or raise train.epochs");
  }
}

void check_schedule_end(const Experiment& experiment, const toml::table& document) {
  const double min_lr = experiment.train.schedule.min_lr, lr = experiment.train.optimizer.lr;
  if (min_lr <= lr) return;
  refuse(source_of(document, "train.schedule.min_lr"), "train.schedule.min_lr is " + number_text(min_lr) +
                                                           " but train.optimizer.lr is " + number_text(lr) +
                                                           "; it must not be larger: lower it");
}

void check_points(const Experiment& experiment, const toml::table& document) {
  const ScheduleSection& schedule = experiment.train.schedule;
  if (schedule.name != "table" || !schedule.points.empty()) return;
  refuse(source_of(document, "train.schedule.name"),
         "train.schedule.name is \"table\" but train.schedule.points is not set; write " +
             allowed(*find_key("train.schedule.points")));
}

void check_micro_batch(const Experiment& experiment, const toml::table& document) {
  const TrainSection& train = experiment.train;
  // 0, which stands for auto, is below every batch size.
  if (train.micro_batch <= train.batch_size) return;
  refuse(source_of(document, "train.micro_batch"),
         "train.micro_batch is " + std::to_string(train.micro_batch) + " but train.batch_size is " +
             std::to_string(train.batch_size) + "; a micro-batch is a slice of a batch: lower it or write \"auto\"");
}

void check_momentum(const Experiment& experiment, const toml::table& document) {
  const OptimizerSection& optimizer = experiment.train.optimizer;
  if (optimizer.name != "sgd" || !optimizer.nesterov || optimizer.momentum > 0) return;
  refuse(source_of(document, "train.optimizer.nesterov"),
         "train.optimizer.nesterov is true but train.optimizer.momentum is 0; Nesterov's method needs momentum: set "
         "it, as 0.9");
}

void check_split(const Experiment& experiment, const toml::table& document) {
  if (!experiment.data.split) return;
  const SplitFractions& split = *experiment.data.split;
  const double sum = split.train + split.val + split.test;
  // In binary, 0.7 + 0.2 + 0.1 is not quite 1.
  if (std::fabs(sum - 1) <= 1e-9) return;
  // Rounded, so that the sentence does not show what binary fractions leave behind.
  refuse(source_of(document, "data.split"), "data.split adds up to " + number_text(std::round(sum * 1e9) / 1e9) +
                                                " (train " + number_text(split.train) + ", val " +
                                                number_text(split.val) + ", test " + number_text(split.test) +
                                                "); train, val and test must add up to 1");
}

}  // namespace

void check_rules(const Experiment& experiment, const toml::table& document) {
  check_warm_up(experiment, document);
  check_schedule_end(experiment, document);
  check_points(experiment, document);
  check_micro_batch(experiment, document);
  check_momentum(experiment, document);
  check_split(experiment, document);
}

// `offered` has other capabilities too: only precisions get into the sentence.
void check_precision(const std::string& precision, std::span<const std::string> offered, const std::string& model) {
  if (precision == "fp32" || std::ranges::count(offered, precision) > 0) return;
  std::string usable = "\"fp32\"";
  for (const char* other : {"bf16", "fp16", "fp64"}) {
    if (std::ranges::count(offered, other) > 0) usable += " or \"" + std::string(other) + "\"";
  }
  throw Error(Exit::bad_input, "train.precision",
              "model '" + model + "' does not work in \"" + precision + "\": use " + usable);
}

}  // namespace headroom
