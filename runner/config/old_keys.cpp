#include "config/old_keys.hpp"

#include <algorithm>
#include <array>

namespace headroom {

namespace {

// Notes that several names share.
constexpr std::string_view size_note = "write a size with its unit, as \"50 GiB\"";
constexpr std::string_view wanted_device = "write \"cpu\", \"cuda\" or \"cuda:1\"";
constexpr std::string_view wanted_precision = "write \"bf16\" or \"fp16\" for mixed precision";
constexpr std::string_view one_batch_size = "evaluation uses train.batch_size; remove it";
constexpr std::string_view resume_note = "continue a run with `headroom run --resume DIR`";
constexpr std::string_view out_note = "choose the folder of runs with `headroom run FILE --out DIR`";
constexpr std::string_view parts_note = "write split = { train = 0.9, val = 0.1 } under [data]";
constexpr std::string_view source_option =
    "the path of the data is an option of the datasource: set it under [data.options]";
constexpr std::string_view freeze_note = "write match = \"backbone.*\" and freeze = true below [[train.groups]]";
constexpr std::string_view processes_note =
    "divide a run among processes with `headroom run FILE --nproc N` or a launcher (docs/processes.md); remove it";

constexpr std::array old_keys{
    // the guides
    OldKey{"compute_metrics_online", "metrics.mode",
           "write mode = \"online\" under [metrics] for true, \"full\" for false"},
    OldKey{"online_metrics", "metrics.mode", "write mode = \"online\" under [metrics] for true, \"full\" for false"},
    OldKey{"cache_size_gb", "data.cache_size", size_note},
    OldKey{"cache_size_mb", "data.cache_size", size_note},
    OldKey{"cache_gb", "data.cache_size", size_note},
    OldKey{"rdcc_nbytes", "data.chunk_cache_size", size_note},
    OldKey{"rdcc_w0", "", "the least recently used chunk is evicted first; remove it"},
    OldKey{"rdcc_nslots", "", "the cache of chunks has no table to size; remove it"},
    OldKey{"chunk_cache", "data.chunk_cache_size", size_note},
    OldKey{"chunk_cache_mb", "data.chunk_cache_size", size_note},
    OldKey{"accumulation_steps", "train.gradient_accumulation_steps", ""},
    OldKey{"max_samples", "data.max_samples_for_normalize", ""},
    OldKey{"empty_cache_freq", "memory.empty_cache_every", ""},
    OldKey{"num_episodes", "data.max_groups", ""},
    OldKey{"train_ratio", "data.split", parts_note},
    OldKey{"policy_class", "model.plugin", ""},
    OldKey{"ckpt_dir", "", out_note},

    // windows and batches
    OldKey{"bs", "train.batch_size", ""},
    OldKey{"batchsize", "train.batch_size", ""},
    OldKey{"batch", "train.batch_size", ""},
    OldKey{"train_batch_size", "train.batch_size", ""},
    OldKey{"per_device_train_batch_size", "train.batch_size", ""},
    OldKey{"eval_batch_size", "", one_batch_size},
    OldKey{"val_batch_size", "", one_batch_size},
    OldKey{"per_device_eval_batch_size", "", one_batch_size},
    OldKey{"micro_batch_size", "train.micro_batch", ""},
    OldKey{"microbatch_size", "train.micro_batch", ""},
    OldKey{"train_micro_batch_size_per_gpu", "train.micro_batch", ""},
    OldKey{"device_train_microbatch_size", "train.micro_batch", ""},
    OldKey{"accumulate_grad_batches", "train.gradient_accumulation_steps", ""},
    OldKey{"gradient_accumulation", "train.gradient_accumulation_steps", ""},
    OldKey{"grad_accumulation_steps", "train.gradient_accumulation_steps", ""},
    OldKey{"grad_accum_steps", "train.gradient_accumulation_steps", ""},
    OldKey{"grad_accum", "train.gradient_accumulation_steps", ""},
    OldKey{"accum_steps", "train.gradient_accumulation_steps", ""},
    OldKey{"accum_iter", "train.gradient_accumulation_steps", ""},

    // length of a run
    OldKey{"num_epochs", "train.epochs", ""},
    OldKey{"max_epochs", "train.epochs", ""},
    OldKey{"n_epochs", "train.epochs", ""},
    OldKey{"epoch", "train.epochs", ""},
    OldKey{"num_train_epochs", "train.epochs", ""},
    OldKey{"max_duration", "train.epochs", ""},
    OldKey{"num_steps", "train.max_steps", ""},
    OldKey{"total_steps", "train.max_steps", ""},
    OldKey{"max_train_steps", "train.max_steps", ""},
    OldKey{"max_iter", "train.max_steps", ""},
    OldKey{"max_iters", "train.max_steps", ""},
    OldKey{"iterations", "train.max_steps", ""},

    // optimizer and schedule
    OldKey{"learning_rate", "train.optimizer.lr", ""},
    OldKey{"base_lr", "train.optimizer.lr", ""},
    OldKey{"wd", "train.optimizer.weight_decay", ""},
    OldKey{"beta1", "train.optimizer.betas", "write betas = [0.9, 0.999]"},
    OldKey{"beta2", "train.optimizer.betas", "write betas = [0.9, 0.999]"},
    OldKey{"adam_beta1", "train.optimizer.betas", "write betas = [0.9, 0.999]"},
    OldKey{"adam_beta2", "train.optimizer.betas", "write betas = [0.9, 0.999]"},
    OldKey{"epsilon", "train.optimizer.eps", ""},
    OldKey{"adam_epsilon", "train.optimizer.eps", ""},
    OldKey{"rho", "train.optimizer.alpha", ""},
    OldKey{"optim", "train.optimizer", ""},
    OldKey{"rmsprop", "train.optimizer.name", "write name = \"rmsprop\""},
    OldKey{"lion", "train.optimizer.name", "write name = \"lion\""},
    OldKey{"lamb", "train.optimizer.name", "write name = \"lamb\""},
    OldKey{"optimizer_name", "train.optimizer.name", ""},
    OldKey{"clip_grad_norm", "train.clip_norm", ""},
    OldKey{"clip_grad", "train.clip_norm", ""},
    OldKey{"clip_gradients", "train.clip_norm", ""},
    OldKey{"gradient_clip_val", "train.clip_norm", ""},
    OldKey{"gradient_clipping", "train.clip_norm", ""},
    OldKey{"gradient_clip", "train.clip_norm", ""},
    OldKey{"grad_clip", "train.clip_norm", ""},
    OldKey{"gradient_clip_algorithm", "train.clip_norm", "clip_norm is \"norm\", clip_value is \"value\""},
    OldKey{"clipnorm", "train.clip_norm", ""},
    OldKey{"global_clipnorm", "train.clip_norm", ""},
    OldKey{"clip_grad_value", "train.clip_value", ""},
    OldKey{"clipvalue", "train.clip_value", ""},
    OldKey{"max_grad_value", "train.clip_value", ""},
    OldKey{"max_grad_norm", "train.clip_norm", ""},
    OldKey{"param_groups", "train.groups", ""},
    OldKey{"parameter_groups", "train.groups", ""},
    OldKey{"paramwise_cfg", "train.groups", ""},
    OldKey{"no_decay", "train.groups", "write match = \"*.bias\" and weight_decay = 0.0 below [[train.groups]]"},
    OldKey{"freeze", "train.groups", freeze_note},
    OldKey{"frozen", "train.groups", freeze_note},
    OldKey{"freeze_backbone", "train.groups", freeze_note},
    OldKey{"freeze_layers", "train.groups", freeze_note},
    OldKey{"scheduler", "train.schedule", ""},
    OldKey{"lr_scheduler", "train.schedule", ""},
    OldKey{"lr_schedule", "train.schedule", ""},
    OldKey{"lr_scheduler_type", "train.schedule.name", ""},
    OldKey{"warmup", "train.schedule.warmup_steps", "or warmup_epochs"},
    OldKey{"num_warmup_steps", "train.schedule.warmup_steps", ""},
    OldKey{"num_warmup_epochs", "train.schedule.warmup_epochs", ""},
    OldKey{"warmup_ratio", "train.schedule.warmup_epochs", "write the number of epochs, which may be a fraction"},
    OldKey{"eta_min", "train.schedule.min_lr", ""},
    OldKey{"onecyclelr", "train.schedule.name", "write name = \"one_cycle\""},
    OldKey{"max_lr", "train.optimizer.lr", ""},
    OldKey{"anneal_strategy", "", "one_cycle rises and falls along a cosine; remove it"},
    OldKey{"cycle_momentum", "", "one_cycle changes the learning rate alone; remove it"},
    OldKey{"cosineannealinglr", "train.schedule.name", "write name = \"cosine\""},
    OldKey{"t_max", "", "the cosine schedule ends with the run; remove it"},
    OldKey{"cosineannealingwarmrestarts", "train.schedule.name", "write name = \"cosine_restarts\""},
    OldKey{"t_0", "train.schedule.restart_epochs", ""},
    OldKey{"t_mult", "train.schedule.restart_factor", ""},
    OldKey{"reducelronplateau", "train.schedule.name", "write name = \"plateau\""},
    OldKey{"reduce_lr_on_plateau", "train.schedule.name", "write name = \"plateau\""},
    OldKey{"lr_patience", "train.schedule.plateau_patience", ""},
    OldKey{"milestones", "train.schedule.points", "a jump is two points at one epoch"},
    OldKey{"steplr", "train.schedule.name", "write name = \"step\""},
    OldKey{"step_size", "train.schedule.step_epochs", ""},
    OldKey{"early_stopping", "train.early_stop", "write early_stop = { patience = 20 } under [train]"},
    OldKey{"early_stopping_patience", "train.early_stop.patience", ""},
    OldKey{"ema_decay", "train.ema.decay", ""},
    OldKey{"use_ema", "train.ema.decay", "write ema = { decay = 0.999 } under [train]"},
    OldKey{"skip_nan", "train.on_nonfinite", "write \"stop\" or \"skip\""},
    OldKey{"terminate_on_nan", "train.on_nonfinite", "write \"stop\" or \"skip\""},

    // precision and device
    OldKey{"amp", "train.precision", wanted_precision},
    OldKey{"use_amp", "train.precision", wanted_precision},
    OldKey{"mixed_precision", "train.precision", wanted_precision},
    OldKey{"fp16", "train.precision", wanted_precision},
    OldKey{"bf16", "train.precision", wanted_precision},
    OldKey{"half", "train.precision", wanted_precision},
    OldKey{"dtype", "train.precision", ""},
    OldKey{"accelerator", "experiment.device", wanted_device},
    OldKey{"devices", "experiment.device", wanted_device},
    OldKey{"gpu", "experiment.device", wanted_device},
    OldKey{"gpus", "experiment.device", wanted_device},
    OldKey{"use_cuda", "experiment.device", wanted_device},
    OldKey{"cuda", "experiment.device", wanted_device},
    OldKey{"num_threads", "experiment.threads", ""},
    OldKey{"omp_num_threads", "experiment.threads", ""},
    OldKey{"float32_matmul_precision", "experiment.matmul", "\"auto\", \"ieee\" or \"fast\""},
    OldKey{"strategy", "", processes_note},
    OldKey{"num_nodes", "", processes_note},
    OldKey{"world_size", "", processes_note},
    OldKey{"random_seed", "experiment.seed", ""},
    OldKey{"manual_seed", "experiment.seed", ""},
    OldKey{"seed_everything", "experiment.seed", ""},
    OldKey{"experiment_name", "experiment.name", ""},
    OldKey{"run_name", "experiment.name", ""},

    // loading
    OldKey{"workers", "data.num_workers", ""},
    OldKey{"n_workers", "data.num_workers", ""},
    OldKey{"dataloader_num_workers", "data.num_workers", ""},
    OldKey{"prefetch", "data.prefetch_factor", ""},
    OldKey{"persistent", "data.persistent_workers", ""},
    OldKey{"dataloader_pin_memory", "data.pin_memory", ""},
    OldKey{"pinned", "data.pin_memory", ""},
    OldKey{"normalization", "data.normalize", "write \"off\", \"sampled\" or \"exact\""},
    OldKey{"val_ratio", "data.split", parts_note},
    OldKey{"val_split", "data.split", parts_note},
    OldKey{"train_split", "data.split", parts_note},
    OldKey{"max_files", "data.max_groups", ""},
    OldKey{"max_sessions", "data.max_groups", ""},
    OldKey{"data_dir", "data.options", source_option},
    OldKey{"data_path", "data.options", source_option},
    OldKey{"data_root", "data.options", source_option},
    OldKey{"dataset_dir", "data.options", source_option},
    OldKey{"dataset", "data", ""},
    OldKey{"datasource", "data.source", ""},
    OldKey{"dataloader", "data", ""},

    // sections
    OldKey{"trainer", "train", ""},
    OldKey{"training", "train", ""},
    OldKey{"validation", "eval", ""},
    OldKey{"evaluation", "eval", ""},
    OldKey{"callbacks", "", "early_stop is under [train], checkpoints under [checkpoint]; remove it"},

    // logging, evaluation, checkpoints
    OldKey{"monitor", "experiment.metric", ""},
    OldKey{"metric_for_best_model", "experiment.metric", ""},
    OldKey{"greater_is_better", "experiment.better", "write \"higher\" or \"lower\""},
    OldKey{"log_every_n_steps", "train.log_every", ""},
    OldKey{"logging_steps", "train.log_every", ""},
    OldKey{"log_interval", "train.log_every", ""},
    OldKey{"log_freq", "train.log_every", ""},
    OldKey{"print_freq", "train.log_every", ""},
    OldKey{"print_every", "train.log_every", ""},
    OldKey{"check_val_every_n_epoch", "eval.every_epochs", ""},
    OldKey{"eval_every", "eval.every_epochs", ""},
    OldKey{"eval_interval", "eval.every_epochs", ""},
    OldKey{"val_interval", "eval.every_epochs", ""},
    OldKey{"save_every", "checkpoint.every_steps", ""},
    OldKey{"save_steps", "checkpoint.every_steps", ""},
    OldKey{"save_interval", "checkpoint.every_steps", ""},
    OldKey{"every_n_train_steps", "checkpoint.every_steps", ""},
    OldKey{"checkpoint_every", "checkpoint.every_steps", ""},
    OldKey{"save_top_k", "checkpoint.keep", ""},
    OldKey{"save_total_limit", "checkpoint.keep", ""},
    OldKey{"resume", "", resume_note},
    OldKey{"resume_from_checkpoint", "", resume_note},
    OldKey{"output_dir", "", out_note},
    OldKey{"out_dir", "", out_note},
    OldKey{"save_dir", "", out_note},
    OldKey{"default_root_dir", "", out_note},
    OldKey{"pretrained", "init.from", ""},
    OldKey{"init_from", "init.from", ""},
    OldKey{"load_from", "init.from", ""},

    // memory
    OldKey{"empty_cache", "memory.empty_cache_every", ""},
    OldKey{"clear_cache_every", "memory.empty_cache_every", ""},
    OldKey{"gc_collect", "memory.gc_every", "write \"epoch\", \"pressure\" or a number of steps"},
    OldKey{"gc_interval", "memory.gc_every", ""},
    OldKey{"memory_limit", "memory.limit", size_note},
    OldKey{"memory_limit_gb", "memory.limit", size_note},
    OldKey{"max_memory", "memory.limit", size_note},
    OldKey{"max_memory_gb", "memory.limit", size_note},
};

constexpr std::string_view optimizer_name = "train.optimizer.name", schedule_name = "train.schedule.name";

constexpr std::array old_words{
    OldWord{optimizer_name, "adamw_torch", "adamw"},
    OldWord{optimizer_name, "adamw_torch_fused", "adamw"},
    OldWord{optimizer_name, "rms_prop", "rmsprop"},
    OldWord{optimizer_name, "lion_32bit", "lion"},
    OldWord{optimizer_name, "fusedlamb", "lamb"},
    OldWord{optimizer_name, "nesterov", "sgd"},

    OldWord{schedule_name, "none", "constant"},
    OldWord{schedule_name, "constantlr", "constant"},
    OldWord{schedule_name, "constant_with_warmup", "constant"},
    OldWord{schedule_name, "cosineannealinglr", "cosine"},
    OldWord{schedule_name, "cosine_annealing", "cosine"},
    OldWord{schedule_name, "cosineannealingwarmrestarts", "cosine_restarts"},
    OldWord{schedule_name, "cosine_with_restarts", "cosine_restarts"},
    OldWord{schedule_name, "sgdr", "cosine_restarts"},
    OldWord{schedule_name, "linearlr", "linear"},
    OldWord{schedule_name, "onecyclelr", "one_cycle"},
    OldWord{schedule_name, "onecycle", "one_cycle"},
    OldWord{schedule_name, "reducelronplateau", "plateau"},
    OldWord{schedule_name, "reduce_lr_on_plateau", "plateau"},
    OldWord{schedule_name, "steplr", "step"},
    OldWord{schedule_name, "exponentiallr", "step"},
    OldWord{schedule_name, "multisteplr", "table"},
    OldWord{schedule_name, "lambdalr", "table"},
    OldWord{schedule_name, "piecewise", "table"},
};

}  // namespace

std::string normalised(std::string_view name) {
  std::string result(name);
  // Not std::tolower(), which asks the locale.
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-') c = '_';
  }
  return result;
}

std::span<const OldKey> all_old_keys() { return old_keys; }

std::span<const OldWord> all_old_words() { return old_words; }

std::string_view find_old_word(std::string_view key, std::string_view word) {
  const std::string name = normalised(word);
  const auto* found = std::ranges::find_if(
      old_words, [&](const OldWord& candidate) { return candidate.key == key && candidate.old == name; });
  return found == old_words.end() ? std::string_view() : found->word;
}

// A linear search will do: it is made once, for the sentence of an error.
const OldKey* find_old_key(std::string_view name) {
  const auto* found = std::ranges::find(old_keys, normalised(name), &OldKey::old);
  return found == old_keys.end() ? nullptr : found;
}

}  // namespace headroom
