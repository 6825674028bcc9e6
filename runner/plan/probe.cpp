#include "plan/probe.hpp"

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

#include "config/digest.hpp"
#include "config/user_cache.hpp"
#include "config/values.hpp"
#include "memory/file_memory.hpp"
#include "memory/supervisor.hpp"
#include "record/run_folder.hpp"
#include "train/compute.hpp"
#include "train/run_data.hpp"

namespace headroom {

nlohmann::json Probe::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const ProbePoint& point : points) {
    list.push_back({{"micro_batch", point.micro_batch},
                    {"held_bytes", point.held_bytes},
                    {"least_bytes", point.least_bytes},
                    {"training_activation_bytes", point.training_activation_bytes},
                    {"evaluation_activation_bytes", point.evaluation_activation_bytes}});
  }
  return {
      {"built_bytes", built_bytes},   {"base_bytes", base_bytes},         {"points", list},
      {"shortage", shortage},         {"train_samples", train_samples},   {"val_samples", val_samples},
      {"kept_bytes", kept_bytes},     {"chunk_bytes", chunk_bytes},       {"largest_chunk_bytes", largest_chunk_bytes},
      {"reader_bytes", reader_bytes}, {"worker_bytes", worker_bytes},     {"shares_workers", shares_workers},
      {"field_bytes", field_bytes},   {"why_whole", indivisible_because}, {"seconds", seconds}};
}

Probe Probe::from_json(const nlohmann::json& json) {
  Probe probe;
  json.at("built_bytes").get_to(probe.built_bytes);
  json.at("base_bytes").get_to(probe.base_bytes);
  for (const nlohmann::json& point : json.at("points")) {
    probe.points.push_back({point.at("micro_batch"), {}});
    point.at("held_bytes").get_to(probe.points.back().held_bytes);
    point.at("least_bytes").get_to(probe.points.back().least_bytes);
    point.at("training_activation_bytes").get_to(probe.points.back().training_activation_bytes);
    point.at("evaluation_activation_bytes").get_to(probe.points.back().evaluation_activation_bytes);
  }
  json.at("shortage").get_to(probe.shortage);
  json.at("train_samples").get_to(probe.train_samples);
  json.at("val_samples").get_to(probe.val_samples);
  json.at("kept_bytes").get_to(probe.kept_bytes);
  json.at("chunk_bytes").get_to(probe.chunk_bytes);
  json.at("largest_chunk_bytes").get_to(probe.largest_chunk_bytes);
  json.at("reader_bytes").get_to(probe.reader_bytes);
  json.at("worker_bytes").get_to(probe.worker_bytes);
  json.at("shares_workers").get_to(probe.shares_workers);
  json.at("field_bytes").get_to(probe.field_bytes);
  json.at("why_whole").get_to(probe.indivisible_because);
  json.at("seconds").get_to(probe.seconds);
  return probe;
}

namespace {

namespace fs = std::filesystem;

// Part of the key, so that probes kept in another format, or measured by another rule, are never found.
constexpr int probe_format = 10;

// This very file: another build of it is another file.
nlohmann::json file_id(const fs::path& file) {
  struct stat info {};
  if (stat(file.c_str(), &info) != 0) return file.string();
  return {fs::canonical(file).string(), info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

std::string text_of(const OptionTable& table, const OptionValues& values) {
  std::ostringstream text;
  text << options_to_toml(table, values);
  return text.str();
}

std::string machine() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

fs::path file_of(const std::string& key) {
  const fs::path folder = user_cache("plans");
  return folder.empty() ? folder : folder / (key + ".json");
}

// What was probed, as far as memory can tell: the experiment without the lengths of a run, without batch size,
// accumulation and memory limit (a plan computes with those), with the plugins' files, LibTorch, threads and machine.
std::string plan_key(const RunData& data, const std::vector<std::string>& recompute) {
  const Experiment& e = data.experiment;
  nlohmann::json json = {
      {"format", probe_format},
      {"headroom", file_id("/proc/self/exe")},
      {"libtorch", TORCH_VERSION},
      {"machine", machine()},
      {"processor", processor_text()},
      {"model", file_id(data.model_library.path())},
      {"model_files", data.model_files},
      {"model_options", text_of(data.model_table, data.model_options)},
      {"source", file_id(data.source_library.path())},
      {"data_options", text_of(data.data_table, data.data_options)},
      {"content", data.content_id},
      {"samples", {data.splits.train.length(), data.splits.val.length(), data.samples_per_epoch()}},
      {"readers",
       {e.data.num_workers, e.data.prefetch_factor, e.data.prefetch_size_bytes, e.data.persistent_workers,
        e.data.cache_size_bytes, e.data.chunk_cache_size_bytes}},
      // Whether they are used decides the memory; their values do not.
      {"optimizer", {e.train.optimizer.name, e.train.optimizer.momentum > 0, e.train.ema_decay > 0}},
      {"clips", e.train.clip_norm > 0 || e.train.clip_value > 0},
      {"precision", e.train.precision},
      {"metrics", {e.metrics.mode, e.metrics.train_batches, e.metrics.eval_batches}},
      {"device", data.device.str()},
      {"threads", data.threads},
      {"matmul", e.experiment.matmul},
      {"recompute", recompute},
      {"window", std::min<int64_t>(data.window_samples(), 16)},  // how far a probe can go
  };
  if (data.optimizer) {
    json["optimizer_plugin"] = {file_id(data.optimizer->library().path()),
                                text_of(data.optimizer->table(), data.optimizer->options())};
  }
  // Which parameters are frozen follows from these in their order.
  for (const ParameterGroup& group : e.train.groups) json["groups"].push_back({group.match, group.freeze});
  return Digest().add(json_text(json)).hex();
}

// A file that cannot be read counts as none: the probe is made again.
std::optional<Probe> kept_probe(const std::string& key) {
  const auto json = read_json_file(file_of(key));
  if (json.is_null()) return std::nullopt;
  try {
    return Probe::from_json(json);
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

void keep_probe(const std::string& key, const Probe& probe) {
  if (const fs::path file = file_of(key); !file.empty()) keep_in_cache(file, probe.json().dump());
}

Probe probe_in_child(ProbeWords words) {
  // Ours, so that it goes with us even where the probe is killed.
  const ScratchFolder folder("plan");
  words.insert(words.end(), {"--folder", folder.path().string()});
  Ended ended;
  const std::string text = output_of("/proc/self/exe", words, ended);
  const int exit_code = ended.exit_code();
  if (exit_code != 0) {
    // 128 and more: a signal ended it.
    const bool known = exit_code < 128 && exit_code != static_cast<int>(Exit::bug);
    throw Error(known ? static_cast<Exit>(exit_code) : Exit::bug, "plan",
                "the probe ended with exit code " + std::to_string(exit_code) + " (see above)");
  }
  try {
    return Probe::from_json(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& problem) {
    throw Error(Exit::bug, "plan", std::string("the probe's answer cannot be read: ") + problem.what());
  }
}

std::string recompute_literal(const std::vector<std::string>& kinds) {
  return value_literal(*find_key("memory.recompute"), kinds);
}

}  // namespace

Probe find_probe(const RunData& data, const std::vector<std::string>& recompute, ProbeWords words, bool& cached) {
  const std::string key = plan_key(data, recompute);
  if (auto kept = kept_probe(key)) {
    cached = true;
    return *kept;
  }
  // The child probes these kinds, whatever the file says.
  words.insert(words.end(), {"--set", "memory.recompute=" + recompute_literal(recompute)});
  Probe probe = probe_in_child(words);
  // What was cut short by the memory of the moment is not true tomorrow.
  if (probe.shortage.empty()) keep_probe(key, probe);
  return probe;
}

}  // namespace headroom
