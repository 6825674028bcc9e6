#include <algorithm>
#include <cstdio>

#include "memory/budget.hpp"
#include "memory/readable.hpp"
#include "plan/plan.hpp"

namespace headroom {

namespace {

// Aligned to the right.
std::string padded(const std::string& text, size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

std::string setting_text(const Setting& setting) {
  return std::to_string(setting.batch_size) + " x " + std::to_string(setting.accumulation) + ", micro-batch " +
         std::to_string(setting.micro_batch);
}

std::string limit_text(const MemoryLimit& limit) { return limit.bytes ? size_text(*limit.bytes) : "no limit"; }

std::string limit_and_cushion_text(const MemoryLimit& limit) {
  if (!limit.bytes) return limit_text(limit);
  return size_text(*limit.bytes) + ", of which " + size_text(cushion_bytes(*limit.bytes)) + " stay free";
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string kept_text(const Plan& plan) {
  return std::to_string(plan.kept_samples) + " samples x " + size_text(plan.kept_bytes_per_sample) + " = " +
         size_text(plan.kept_samples * plan.kept_bytes_per_sample);
}

std::string workers_text(const Prediction& prediction) {
  return prediction.workers_bytes > 0 ? ", " + size_text(prediction.workers_bytes) + " for worker processes" : "";
}

std::string verdict(const PlanRow& row) {
  if (row.fits) return "fits";
  return row.works ? "fits with less read ahead and cached" : "does not fit";
}

std::string need_text(const PlanRow& row) {
  return row.fits ? "at most " + size_text(row.prediction.peak_bytes)
                  : "at least " + size_text(row.prediction.least_bytes) + ", with less read ahead and cached";
}

// " --set ..." for what leads from the setting as it is written to the recommended one.
std::string changes(const Plan& plan) {
  const Setting& best = plan.recommended->setting;
  std::string text;
  if (best.batch_size != plan.as_written.setting.batch_size) {
    text += " --set train.batch_size=" + std::to_string(best.batch_size) +
            " --set train.gradient_accumulation_steps=" + std::to_string(best.accumulation);
  }
  // The fixed one does not fit; "auto" lets the run come down to one that does.
  if (!plan.micro_batch_is_auto) text += " --set train.micro_batch=auto";
  return text;
}

}  // namespace

std::string Plan::text(const Experiment& experiment) const {
  std::string out = "memory.limit gives " + limit_text(limit) + ": " + limit.rule + "\n\n";
  out += "  batch x accumulation  micro-batch  predicted peak  largest in\n";
  for (const PlanRow& row : rows) {
    const Setting& s = row.setting;
    const bool written =
        s.batch_size == as_written.setting.batch_size && s.micro_batch == as_written.setting.micro_batch;
    const std::string batch = std::to_string(s.batch_size) + " x " + std::to_string(s.accumulation);
    out += (written ? "> " : "  ") + padded(batch, 20) + padded(std::to_string(s.micro_batch), 13) +
           padded(size_text(row.prediction.peak_bytes), 16) + "  " +
           std::string(probe_phases[row.prediction.largest_phase]) + (row.fits ? "" : "  " + verdict(row)) + "\n";
  }
  if (!indivisible_because.empty()) out += "\n" + indivisible_because + ".\n";
  if (!recompute.empty())
    out += "\nWhat the model's calls of " + listed(recompute) + " keep is computed again in backward.\n";
  out += "\nAs written (>): " + setting_text(as_written.setting) + " takes at most " +
         size_text(as_written.prediction.peak_bytes) + ", which " + verdict(as_written) + "; " + size_text(base_bytes) +
         " of it between windows, " + size_text(as_written.prediction.slots_bytes) + " for batches read ahead" +
         workers_text(as_written.prediction) + ".\n";
  if (as_written.prediction.kept_bytes > 0) out += "metrics.mode = \"full\" keeps " + kept_text(*this) + " of it.\n";
  if (!recommended) return out + "\n" + refusal(experiment) + "\n";
  const Setting &best = recommended->setting, &now = as_written.setting;
  if (best.batch_size == now.batch_size && best.micro_batch == now.micro_batch) {
    // The micro-batch is named only where the run chose one smaller than the batch.
    const bool whole = now.micro_batch == now.batch_size || !micro_batch_is_auto;
    return out + (whole ? "Nothing to change.\n"
                        : "Nothing to change: the run starts with micro-batches of " + std::to_string(now.micro_batch) +
                              ".\n");
  }
  return out + "To keep the window, and with it the mathematics:" + changes(*this) + " (micro-batch " +
         std::to_string(best.micro_batch) + ", " + need_text(*recommended) + ")\n";
}

std::string Plan::refusal(const Experiment& experiment) const {
  if (recommended) {
    return "as written, " + setting_text(as_written.setting) + ", it needs at least " +
           size_text(as_written.prediction.least_bytes) + " and the limit is " + limit_and_cushion_text(limit) + " (" +
           limit.rule + "). To make it fit, with the same mathematics:" + changes(*this) + " (" +
           need_text(*recommended) + "), or raise memory.limit";
  }
  // Nothing fits: the sentence explains the setting that comes closest.
  const auto smallest = std::min_element(rows.begin(), rows.end(), [](const PlanRow& a, const PlanRow& b) {
    return a.prediction.least_bytes < b.prediction.least_bytes;
  });
  const Prediction& least = smallest->prediction;
  const int64_t reading = least.reading_bytes - least.workers_bytes;
  // The parts have to add up to the sum in the sentence. What is held between windows may be given back in part.
  const int64_t after_batch = least.least_bytes - least.reading_bytes - least.kept_bytes;
  const int64_t between = std::min(base_bytes, after_batch), growing = after_batch - between;
  std::string text = "the smallest setting, " + setting_text(smallest->setting) + ", needs " +
                     size_text(least.least_bytes) + " and the limit is " + limit_and_cushion_text(limit) + " (" +
                     limit.rule + "): " + size_text(between) + " between windows, " + size_text(reading) +
                     " for one batch" + workers_text(least) + ", " + size_text(growing) + " for one micro-batch";
  if (least.kept_bytes > 0) text += ", " + kept_text(*this) + " of outputs kept by metrics.mode = \"full\"";
  if (!recompute.empty()) text += "; " + listed(recompute) + " are computed again in backward already";
  text += ". To make it fit, cheapest first: raise memory.limit";
  if (least.kept_bytes > 0) text += "; metrics.mode = \"online\"";
  // Where batches can be divided, the rows went down to one sample already.
  if (!indivisible_because.empty() && experiment.train.batch_size > 1)
    text += "; a smaller train.batch_size, which changes the mathematics (" + indivisible_because + ")";
  return text + "; a smaller model or shorter samples (model.options, data.options)";
}

}  // namespace headroom
