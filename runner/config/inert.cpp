#include "config/inert.hpp"

#include <array>

namespace headroom {

namespace {

struct InertKey {
  std::string_view key, why;
  bool (*applies)(const Experiment&);
};

bool is_sgd(const Experiment& e) { return e.train.optimizer.name == "sgd"; }
bool is_adam(const Experiment& e) { return !is_sgd(e); }
bool is_step(const Experiment& e) { return e.train.schedule.name == "step"; }
bool is_unlike_step(const Experiment& e) { return !is_step(e); }
bool has_no_end(const Experiment& e) { return is_step(e) || e.train.schedule.name == "constant"; }
bool is_not_sampled(const Experiment& e) { return e.metrics.mode != "sampled"; }
bool is_not_grouped(const Experiment& e) { return e.data.shuffle != "auto" && e.data.shuffle != "grouped"; }
bool reads_inline(const Experiment& e) { return e.data.num_workers == 0; }
bool starts_fresh(const Experiment& e) { return e.init.from.empty(); }

// What this version does not act on yet: a row goes when the feature comes.
constexpr std::array unfinished{
    InertKey{"memory.device_limit", "this version sets no limit on a GPU",
             [](const Experiment& e) { return e.memory.device_limit != "off"; }},
    InertKey{"sweep", "one run tries none of its values", [](const Experiment& e) { return e.sweep.has_value(); }},
};

// What another key makes meaningless, for good.
constexpr std::array overruled{
    InertKey{"data.prefetch_factor", "data.num_workers = 0 reads nothing ahead", reads_inline},
    InertKey{"data.prefetch_size", "data.num_workers = 0 reads nothing ahead", reads_inline},
    InertKey{"data.persistent_workers", "data.num_workers = 0 has no workers", reads_inline},
    InertKey{"data.cache_policy", "data.cache_size is 0",
             [](const Experiment& e) { return e.data.cache_size_bytes == 0; }},
    InertKey{"data.normalized_cache", "data.normalize is \"off\"",
             [](const Experiment& e) { return e.data.normalize == "off"; }},
    InertKey{"data.max_samples_for_normalize", "only data.normalize = \"sampled\" uses it",
             [](const Experiment& e) { return e.data.normalize != "sampled"; }},
    InertKey{"data.grouped.runs", "only data.shuffle = \"grouped\" uses it", is_not_grouped},
    InertKey{"data.grouped.run_length", "only data.shuffle = \"grouped\" uses it", is_not_grouped},
    InertKey{"train.optimizer.betas", "sgd does not use it", is_sgd},
    InertKey{"train.optimizer.eps", "sgd does not use it", is_sgd},
    InertKey{"train.optimizer.momentum", "only sgd uses it", is_adam},
    InertKey{"train.optimizer.nesterov", "only sgd uses it", is_adam},
    InertKey{"train.schedule.min_lr", "only the cosine and linear schedules use it", has_no_end},
    InertKey{"train.schedule.step_epochs", "only the step schedule uses it", is_unlike_step},
    InertKey{"train.schedule.gamma", "only the step schedule uses it", is_unlike_step},
    InertKey{"metrics.train_batches", "only metrics.mode = \"sampled\" uses it", is_not_sampled},
    InertKey{"metrics.eval_batches", "only metrics.mode = \"sampled\" uses it", is_not_sampled},
    InertKey{"init.map", "init.from is not set", starts_fresh},
    InertKey{"init.ignore", "init.from is not set", starts_fresh},
};

}  // namespace

std::string_view why_inert(const Experiment& experiment, std::string_view key) {
  for (const InertKey& row : unfinished) {
    if (row.key == key && row.applies(experiment)) return row.why;
  }
  for (const InertKey& row : overruled) {
    if (row.key == key && row.applies(experiment)) return row.why;
  }
  return "";
}

}  // namespace headroom
