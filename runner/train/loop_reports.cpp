// What the training loop reports: log lines, scalars, events, the memory part of the summary.

#include <algorithm>
#include <utility>

#include "data/cache_session.hpp"
#include "memory/process_memory.hpp"
#include "memory/readable.hpp"
#include "train/loop.hpp"

namespace headroom {

namespace {

// What one line has room for: the losses, the model's first metric, and the metric that decides.
Scalars headline(const Scalars& values, const std::vector<MetricInfo>& metrics, const std::string& deciding) {
  Scalars chosen;
  for (const auto& value : values) {
    const std::string name = value.first.substr(value.first.find('/') + 1);
    const bool first = !metrics.empty() && name == metrics.front().name;
    if (name == "loss" || first || value.first == deciding) chosen.push_back(value);
  }
  return chosen;
}

// What the plugins say that they hold, by owner; the ledger knows it as "other".
nlohmann::json plugin_bytes(const Session& session) {
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [owner, bytes] : session.plugin_memory()) {
    if (bytes != 0) all[owner] = bytes;
  }
  return all;
}

std::string plugin_text(const nlohmann::json& bytes) {
  std::string text;
  for (const auto& [owner, held] : bytes.items())
    text += (text.empty() ? "; of other, plugins say: " : ", ") + owner + " " + size_text(held.get<int64_t>());
  return text;
}

// Of every epoch precision, recall and F1; the matrix, which grows with the square of the classes, is in summary.json.
nlohmann::json without_matrices(const nlohmann::json& classes) {
  nlohmann::json shown = nlohmann::json::object();
  for (const auto& [name, metrics] : classes.items()) {
    for (const char* key : {"count", "precision", "recall", "f1", "support"}) shown[name][key] = metrics.at(key);
  }
  return shown;
}

}  // namespace

void TrainingLoop::report_resume(const Differences& differences) {
  const auto& [mathematics, length, rounding, code] = differences;
  const ScheduleSection& schedule = experiment_.train.schedule;
  // A plateau is also judged at the end of a run, and the end is elsewhere now.
  const bool moves = !length.empty() && (spans_the_run(schedule) || schedule.name == "plateau");
  const bool equal = mathematics.empty() && rounding.empty() && code.empty() && !moves;
  std::vector<std::string> all = mathematics;
  for (const auto* more : {&length, &rounding, &code}) all.insert(all.end(), more->begin(), more->end());
  log_.event("resume", {{"step", position_.step},
                        {"epoch", position_.epoch + 1},
                        {"differences", all},
                        {"keeps_mathematics", mathematics.empty() && !moves}});
  log_.say("resumed at step " + std::to_string(position_.step) + (equal ? ", bit-equal to an undisturbed run" : ""));
  for (const std::string& difference : mathematics) log_.say("trained with other settings from here on: " + difference);
  for (const std::string& difference : length) {
    log_.say("another length: " + difference + (moves ? "; train.schedule goes by the new length from here on" : ""));
  }
  for (const std::string& difference : rounding) log_.say("equal up to rounding only: " + difference);
  for (const std::string& difference : code) log_.say(difference + ": equal only if it computes the same");
}

void TrainingLoop::report_step(double loss, double lr, double norm) {
  const PhaseScope reporting(StepPhase::metrics);
  log_.progress(windows_done(), {{"loss", loss}, {"lr", lr}});
  if (position_.step % experiment_.train.log_every == 0) {
    const std::chrono::duration<double> interval = std::chrono::steady_clock::now() - interval_started_;
    Scalars values = {
        // Pooled over the steps since the last row.
        {"train/loss_step", step_.interval_sums().loss()},
        {"train/lr", lr},
        {"train/gradient_norm", norm},
        {"train/samples_per_second", static_cast<double>(interval_samples_) / std::max(interval.count(), 1e-9)}};
    log_.scalars(position_.step, position_.epoch + 1, std::move(values));
    step_.interval_sums().zero();
    interval_samples_ = 0;
    interval_started_ = std::chrono::steady_clock::now();
  }
  if (experiment_.memory.log_every > 0 && position_.step % experiment_.memory.log_every == 0) report_memory();
}

void TrainingLoop::report_shortage(const Shortage& shortage, const std::string& action) {
  log_.say("out of memory in " + std::string(shortage.doing) + " at step " + std::to_string(position_.step) +
           ", micro-batch " + std::to_string(shortage.micro_batch) + ": " + action);
  log_.event("out_of_memory", {{"step", position_.step},
                               {"doing", shortage.doing},
                               {"micro_batch", shortage.micro_batch},
                               {"requested_bytes", shortage.requested_bytes},
                               {"held_bytes", shortage.ledger.held_bytes},
                               {"action", action}});
}

void TrainingLoop::report_loss_scale(double was, double is) {
  log_.event("loss_scale", {{"step", position_.step}, {"was", was}, {"is", is}});
  // A stream, as std::to_string() would add six decimals.
  log_.say((std::ostringstream() << "gradients overflow float16 at a loss scale of " << was
                                 << ": the window is computed again at " << is)
               .str());
}

// "val/loss has not improved by more than 0.1 for 3 evaluations".
std::string TrainingLoop::without_gain(int64_t evaluations) const {
  std::ostringstream text;
  text << metric_ << " has not improved ";
  if (const double least = least_gain(); least > 0) text << "by more than " << least << ' ';
  text << "for " << counted(static_cast<uint64_t>(evaluations), "evaluation");
  return text.str();
}

void TrainingLoop::report_plateau(double was, double is) {
  log_.event("plateau", {{"step", position_.step}, {"metric", metric_}, {"was", was}, {"is", is}});
  log_.say((std::ostringstream() << without_gain(experiment_.train.schedule.plateau_patience)
                                 << ": the learning rate was " << was << ", is " << is)
               .str());
}

void TrainingLoop::report_early_stop() {
  log_.say("early stop: " + without_gain(position_.stale_evaluations));
  log_.event("early_stop", {{"epoch", position_.epoch}, {"metric", metric_}});
}

// Ends the run unless such windows are skipped.
void TrainingLoop::report_not_finite(double loss, double norm, const std::string& bad_value) {
  log_.event("nonfinite",
             {{"step", position_.step}, {"loss", loss}, {"gradient_norm", norm}, {"bad_value", bad_value}});
  if (experiment_.train.on_nonfinite == "skip") return;
  throw Error(
      Exit::diverged, "train",
      "after step " + std::to_string(position_.step) + " the loss is " + std::to_string(loss) +
          " and the gradient norm " + std::to_string(norm) + ": " +
          (bad_value.empty() ? ""
                             : bad_value + "; mend the data, or leave such samples out with data.on_bad_sample = "
                                           "\"skip_not_finite\"; where the model expects such values, ") +
          "lower train.optimizer.lr, set train.clip_norm, or train.on_nonfinite = \"skip\"");
}

void TrainingLoop::report_without_gradient() {
  const std::vector<std::string> names = step_.without_gradient();
  if (names.empty()) return;
  // The line names a few of them; the event has all.
  constexpr size_t most_named = 5;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), most_named); ++i) list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > most_named) list += " and " + std::to_string(names.size() - most_named) + " more";
  log_.event("without_gradient", {{"step", position_.step}, {"parameters", names}});
  log_.say(
      "no gradient has reached " + list + " by step " + std::to_string(position_.step) +
      ": the loss has not depended on them so far. A model says so of parameters that are meant to stay as they are "
      "(frozen or inert); whether a step uses the others is worth a look");
}

std::string TrainingLoop::memory_summary() const {
  const RetryCounts &train = step_.retry().counts(), &eval = eval_retry_.counts();
  return memory_.summary() + "; " + gc_points_.summary() +
         "; out of memory: " + std::to_string(train.repeated + eval.repeated) + " repeated, " +
         std::to_string(train.halved + eval.halved) + " halved, micro-batch " + std::to_string(step_.retry().size()) +
         recompute_text(step_.recompute().kinds());
}

nlohmann::json TrainingLoop::memory_json() const {
  const auto counts = [](const Retry& retry) {
    const RetryCounts& c = retry.counts();
    return nlohmann::json{{"micro_batch", retry.size()},
                          {"repeated", c.repeated},
                          {"halved", c.halved},
                          {"grown", c.grown},
                          {"recomputed", c.recomputed}};
  };
  nlohmann::json json = memory_.json();
  // Beside the measured peak, so that predictions can be judged.
  if (predicted_peak_bytes_) json["predicted_peak_bytes"] = *predicted_peak_bytes_;
  // Training and evaluation shrink and grow apart: each has its own micro-batch.
  json.update({{"retries", {{"train", counts(step_.retry())}, {"eval", counts(eval_retry_)}}},
               {"recompute", step_.recompute().kinds()},
               {"gc_points", gc_points_.json()},
               {"step", step_meter_.json()}});
  return json;
}

void TrainingLoop::report_memory() {
  memory_.settle();
  MemoryUsage usage = read_memory_usage();
  // Of a GPU, whose memory is no part of what the process holds.
  usage.device = read_device_memory(setup_.device);
  const LedgerReading ledger = read_ledger();
  nlohmann::json fields = {{"process_bytes", usage.process_bytes},
                           {"system_used_bytes", usage.system_used_bytes},
                           {"system_total_bytes", usage.system_total_bytes},
                           {"held_bytes", ledger.held_bytes},
                           {"slack_bytes", ledger.slack_bytes},
                           {"other_bytes", ledger.other_bytes}};
  for (size_t i = 0; i < owner_count; ++i) {
    fields[std::string(owner_name(static_cast<Owner>(i))) + "_bytes"] = ledger.live_bytes[i];
  }
  fields["plugin_bytes"] = plugin_bytes(*setup_.data.session);
  if (usage.device) {
    fields["device_allocated_bytes"] = usage.device->allocated_bytes;
    fields["device_reserved_bytes"] = usage.device->reserved_bytes;
  }
  const std::string label = "Step " + std::to_string(position_.step);
  log_.memory(position_.step, fields, memory_line(label, usage));
  log_.say("[" + label + "] Held - " + ledger_line(ledger) + plugin_text(fields["plugin_bytes"]));
  if (usage.system_used_bytes > usage.system_total_bytes / 10 * 9) log_.say(setup_.advice().warning(ledger));
}

void TrainingLoop::report_epoch() {
  const auto& [values, channels, classes] = position_.measured;
  log_.scalars(position_.step, position_.epoch + 1, values);
  // metrics.csv has one value a row and no column for a channel: the event alone has these.
  if (!channels.empty()) {
    log_.event("channels", {{"step", position_.step}, {"epoch", position_.epoch + 1}, {"values", channels}});
  }
  if (!classes.empty()) {
    log_.event("classes",
               {{"step", position_.step}, {"epoch", position_.epoch + 1}, {"values", without_matrices(classes)}});
  }
  log_.end_epoch(headline(values, setup_.model->metrics(), metric_));
  if (experiment_.data.cache_size_bytes > 0) log_.say(cache_line(setup_.data.session->cache->blocks.statistics()));
}

}  // namespace headroom
