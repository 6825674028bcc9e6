// The member of Experiment that holds each key.
#pragma once

#include <tuple>

#include "config/experiment.hpp"

namespace headroom {

// Calls visit(path, member) for every key of known_keys(), in that order. Skips the members of optional sections that
// are absent (data.split, train.early_stop, rescue); where the member itself is optional (data.synth, sweep), it is
// visited. E is Experiment or const Experiment.
template <class E, class Visit>
void each_field(E& e, Visit&& visit) {
  visit("experiment.name", e.experiment.name);
  visit("experiment.seed", e.experiment.seed);
  visit("experiment.device", e.experiment.device);
  visit("experiment.threads", e.experiment.threads);
  visit("experiment.matmul", e.experiment.matmul);
  visit("experiment.metric", e.experiment.metric);
  visit("experiment.better", e.experiment.better);

  visit("model.plugin", e.model_plugin);
  visit("model.options", e.model_options);

  auto& data = e.data;
  visit("data.source", data.source);
  visit("data.num_workers", data.num_workers);
  visit("data.prefetch_factor", data.prefetch_factor);
  visit("data.prefetch_size", data.prefetch_size_bytes);
  visit("data.persistent_workers", data.persistent_workers);
  visit("data.pin_memory", data.pin_memory);
  visit("data.normalize", data.normalize);
  visit("data.max_samples_for_normalize", data.max_samples_for_normalize);
  visit("data.normalized_cache", data.normalized_cache);
  visit("data.cache_size", data.cache_size_bytes);
  visit("data.cache_policy", data.cache_policy);
  visit("data.chunk_cache_size", data.chunk_cache_size_bytes);
  visit("data.memory_map", data.memory_map);
  visit("data.shuffle", data.shuffle);
  visit("data.grouped.runs", data.grouped.runs);
  visit("data.grouped.run_length", data.grouped.run_length);
  if (data.split) {
    visit("data.split.train", data.split->train);
    visit("data.split.val", data.split->val);
    visit("data.split.test", data.split->test);
    visit("data.split.seed", data.split->seed);
  }
  visit("data.max_groups", data.max_groups);
  visit("data.on_bad_sample", data.on_bad_sample);
  visit("data.options", e.data_options);
  visit("data.synth", e.data_synth);

  auto& train = e.train;
  visit("train.epochs", train.epochs);
  visit("train.max_steps", train.max_steps);
  visit("train.batch_size", train.batch_size);
  visit("train.gradient_accumulation_steps", train.gradient_accumulation_steps);
  visit("train.micro_batch", train.micro_batch);
  visit("train.precision", train.precision);
  visit("train.clip_norm", train.clip_norm);
  visit("train.clip_value", train.clip_value);
  visit("train.log_every", train.log_every);
  visit("train.drop_last", train.drop_last);
  visit("train.on_nonfinite", train.on_nonfinite);
  visit("train.elastic", train.elastic);
  visit("train.elastic_min", train.elastic_min);
  visit("train.elastic_restarts", train.elastic_restarts);
  visit("train.ema.decay", train.ema_decay);
  visit("train.optimizer.name", train.optimizer.name);
  visit("train.optimizer.lr", train.optimizer.lr);
  visit("train.optimizer.weight_decay", train.optimizer.weight_decay);
  visit("train.optimizer.betas", std::tie(train.optimizer.beta1, train.optimizer.beta2));
  visit("train.optimizer.eps", train.optimizer.eps);
  visit("train.optimizer.alpha", train.optimizer.alpha);
  visit("train.optimizer.momentum", train.optimizer.momentum);
  visit("train.optimizer.nesterov", train.optimizer.nesterov);
  visit("train.optimizer_options", train.optimizer_options);
  visit("train.groups", train.groups);
  visit("train.schedule.name", train.schedule.name);
  visit("train.schedule.warmup_epochs", train.schedule.warmup_epochs);
  visit("train.schedule.warmup_steps", train.schedule.warmup_steps);
  visit("train.schedule.min_lr", train.schedule.min_lr);
  visit("train.schedule.step_epochs", train.schedule.step_epochs);
  visit("train.schedule.gamma", train.schedule.gamma);
  visit("train.schedule.pct_start", train.schedule.pct_start);
  visit("train.schedule.div_factor", train.schedule.div_factor);
  visit("train.schedule.final_div_factor", train.schedule.final_div_factor);
  visit("train.schedule.restart_epochs", train.schedule.restart_epochs);
  visit("train.schedule.restart_factor", train.schedule.restart_factor);
  visit("train.schedule.points", train.schedule.points);
  visit("train.schedule.plateau_factor", train.schedule.plateau_factor);
  visit("train.schedule.plateau_patience", train.schedule.plateau_patience);
  if (train.early_stop) {
    visit("train.early_stop.patience", train.early_stop->patience);
    visit("train.early_stop.min_delta", train.early_stop->min_delta);
  }

  visit("eval.every_epochs", e.eval.every_epochs);

  visit("checkpoint.every_steps", e.checkpoint.every_steps);
  visit("checkpoint.every_minutes", e.checkpoint.every_minutes);
  visit("checkpoint.keep", e.checkpoint.keep);

  visit("metrics.mode", e.metrics.mode);
  visit("metrics.train_batches", e.metrics.train_batches);
  visit("metrics.eval_batches", e.metrics.eval_batches);

  visit("memory.limit", e.memory.limit);
  visit("memory.device_limit", e.memory.device_limit);
  visit("memory.wait", e.memory.wait_seconds);
  visit("memory.empty_cache_every", e.memory.empty_cache_every);
  visit("memory.empty_cache_every_eval", e.memory.empty_cache_every_eval);
  visit("memory.gc_every", e.memory.gc_every);
  visit("memory.recompute", e.memory.recompute);
  visit("memory.log_every", e.memory.log_every);

  visit("record.events_to", e.record.events_to);

  visit("init.from", e.init.from);
  visit("init.map", e.init.map);
  visit("init.ignore", e.init.ignore);

  if (e.rescue) {
    visit("rescue.rungs", e.rescue->rungs);
    visit("rescue.taken", e.rescue->taken);
  }

  visit("sweep", e.sweep);
}

}  // namespace headroom
