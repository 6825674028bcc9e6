// An experiment with every key, and what tests compare of one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "config/fields.hpp"
#include "config/keys.hpp"
#include "config/values.hpp"
#include "files.hpp"

namespace headroom {

// Every key set to something other than its default.
inline const std::string everything = R"(
[experiment]
name = "all keys"
seed = 42
device = "cuda:1"
threads = 3
matmul = "ieee"
metric = "val/mae"
better = "higher"

[model]
plugin = "m"

[model.options]
width = 8
stages = [{ a = 1, b = [1.5, 2.0] }, { a = 2 }]
"odd key" = "tab\there"

[data]
source = "s"
num_workers = 5
prefetch_factor = 7
prefetch_size = "3 MiB"
persistent_workers = false
pin_memory = true
normalize = "sampled"
max_samples_for_normalize = 123
normalized_cache = true
cache_size = "50 GiB"
cache_policy = "planned"
chunk_cache_size = 1000
memory_map = true
shuffle = "grouped"
grouped = { runs = 8, run_length = 100 }
split = { train = 0.7, val = 0.2, test = 0.1, seed = 9 }
max_groups = 4
on_bad_sample = "skip"

[data.options]
path = "/data"

[data.synth]
sessions = 3

[train]
epochs = 11
max_steps = 1000
batch_size = 16
gradient_accumulation_steps = 4
micro_batch = 8
precision = "fp64"
clip_norm = 0.5
clip_value = 0.25
log_every = 7
drop_last = true
on_nonfinite = "skip"
elastic = true
elastic_min = 2
elastic_restarts = 3
optimizer = { name = "adam", lr = 3e-4, weight_decay = 0.02, betas = [0.8, 0.99], eps = 1e-7, alpha = 0.95, momentum = 0.5, nesterov = true }
optimizer_options = { rate = 2 }
schedule = { name = "cosine", warmup_epochs = 2.5, min_lr = 1e-6, warmup_steps = 0, step_epochs = 3, gamma = 0.3, pct_start = 0.2, div_factor = 20, final_div_factor = 100, restart_epochs = 4, restart_factor = 2, points = [[0, 0.5], [5, 1.0]], plateau_factor = 0.5, plateau_patience = 3 }
groups = [{ match = "backbone.*", freeze = true }, { match = "*.bias", lr_scale = 0.5, weight_decay = 0.0 }, { match = "*" }]
early_stop = { patience = 5, min_delta = 0.001 }
ema = { decay = 0.999 }

[eval]
every_epochs = 2

[checkpoint]
every_steps = 100
every_minutes = 2.5
keep = 4

[metrics]
mode = "sampled"
train_batches = 10
eval_batches = 20

[memory]
limit = "80%"
device_limit = 1000000
wait = "10 min"
empty_cache_every = 3
empty_cache_every_eval = 4
gc_every = 25
recompute = ["attention", "mlp"]
log_every = 9

[record]
events_to = "cat > /dev/null"

[init]
from = "/weights"
map = { "old." = "new.", "" = "x" }
ignore = ["head.*"]

[rescue]
rungs = [{ "data.num_workers" = 5 }, { "model.options.width" = 4, train.batch_size = 8 }]
taken = 1

[sweep]
"train.batch_size" = [8, 16]
constraint = "train.batch_size == 8"
)";

inline std::map<std::string, std::string> values_of(const Experiment& experiment) {
  std::map<std::string, std::string> values;
  each_field(experiment, [&](std::string_view path, const auto& field) {
    values[std::string(path)] = value_literal(*find_key(path), field);
  });
  return values;
}

inline std::vector<std::string> inert_keys_of(const Experiment& experiment) {
  std::vector<std::string> keys;
  for (const Inert& inert : experiment.inert) keys.push_back(inert.key);
  return keys;
}

}  // namespace headroom
