#include "train/announce.hpp"

#include "data/data_report.hpp"
#include "memory/budget.hpp"
#include "memory/cores.hpp"
#include "memory/limits.hpp"
#include "memory/readable.hpp"
#include "train/page_lock.hpp"
#include "train/parameter_groups.hpp"
#include "train/precision.hpp"
#include "train/run_summary.hpp"

namespace headroom {

namespace {

std::string metric_names(const std::vector<MetricInfo>& metrics) {
  std::string names;
  for (const MetricInfo& metric : metrics) names += (names.empty() ? "" : ", ") + metric.name;
  return names;
}

// How much of a run the host's metrics see, where it is not simply all of it.
std::string metrics_line(const Setup& setup) {
  const MetricsSection& section = setup.data.experiment.metrics;
  if (section.mode == "online") return "";
  std::string names = metric_names(host_metrics(setup.output_pairs));
  if (names.empty()) return "metrics.mode: the model declares no prediction with a target for the host to measure";
  if (section.mode == "full") {
    std::vector<OutputPair> kept = setup.output_pairs;
    std::erase_if(kept, [](const OutputPair& pair) { return pair.classes.has_value(); });
    names = metric_names(host_metrics(kept));
    return names.empty() ? "metrics.mode = \"full\" changes nothing: metrics of classes are exact counts"
                         : "metrics: every output of an epoch is kept in memory for " + names;
  }
  return "metrics: " + names + " on at most " + std::to_string(section.train_batches) + " training and " +
         std::to_string(section.eval_batches) + " evaluation batches, chosen evenly; the rest on all";
}

// Where data.pin_memory does nothing.
std::string pin_memory_line(const Setup& setup) {
  if (!setup.data.experiment.data.pin_memory) return "";
  if (!setup.device.is_cuda()) return "data.pin_memory: the model computes on the CPU, batches are not page-locked";
  if (cuda_page_lock()) return "";
  return "data.pin_memory: this LibTorch brings no CUDA runtime of its own, batches are not page-locked";
}

std::string device_limit_line(const RunData& data) {
  const std::string& wanted = data.experiment.memory.device_limit;
  if (!data.device_limit) {
    const bool may_have_a_gpu = data.experiment.experiment.device == "auto",
               limits = wanted != "auto" && wanted != "off";
    return may_have_a_gpu && limits ? "memory.device_limit: the model computes on the CPU" : "";
  }
  const DeviceLimit& limit = *data.device_limit;
  return "memory on " + data.device.str() + ": " +
         (limit.bytes ? "limit " + size_text(*limit.bytes) + ", " : "no limit, ") + limit.rule;
}

// How far this process may grow; 0: no bound is known.
int64_t room_bytes() {
  const Rooms rooms = read_rooms();
  const Room* smallest = rooms.smallest();
  const int64_t room = smallest != nullptr ? smallest->room_bytes : 0, limit = memory_limit();
  return limit > 0 && room > 0 ? std::min(limit, room) : std::max(limit, room);
}

// Where train.micro_batch is set and the model allows no other than the batch itself.
std::string micro_batch_line(const Setup& setup) {
  const int64_t wanted = setup.data.experiment.train.micro_batch, used = setup.micro_batch().size();
  if (wanted == 0 || wanted == used) return "";
  return "train.micro_batch = " + std::to_string(wanted) + " is not used: " + setup.indivisible_because();
}

// A source that names no recordings, clips or sessions cannot keep what belongs together in one split.
std::string groups_line(const RunData& data) {
  if (data.source->splits().size() != 1 || data.splits.val.length() + data.splits.test.length() == 0) return "";
  const uint64_t samples = data.source->length(0);
  if (samples < 2 || data.source->groups(0).size() != samples) return "";
  return "data.split: each of the " + std::to_string(samples) + " samples is a group of its own, as source '" +
         data.source->id() + "' says: where neighbours overlap or share a recording, validation contains training data";
}

}  // namespace

void announce(const Setup& setup, RunLog& log) {
  for (const Inert& inert : setup.data.experiment.inert) log.say(inert.key + ": " + inert.why);
  if (const std::string line = metrics_line(setup); !line.empty()) log.say(line);
  if (const std::string line = micro_batch_line(setup); !line.empty()) log.say(line);
  if (const std::string line = groups_line(setup.data); !line.empty()) log.say(line);
  for (const std::string& line : rescue_lines(setup)) log.say(line);
  for (const std::string& line : group_lines(setup.data.experiment.train.groups, setup.model->parameters()))
    log.say(line);
  const DataSection& data = setup.data.experiment.data;
  if (const std::string line = order_line(data, setup.data.order, setup.data.stored); !line.empty()) log.say(line);
  if (const std::string line = order_warning(data, setup.data.order); !line.empty()) log.say(line);
  if (const std::string line = workers_line(data, auto_threads()); !line.empty()) log.say(line);
  if (const std::string line = slow_precision(setup.data.experiment.train.precision, setup.device); !line.empty())
    log.say(line);
  if (!setup.matmul.line.empty()) log.say(setup.matmul.line);
  CacheSetting cache = setup.data.cache_setting();
  // Of this moment: what others hold leaves less for the cache.
  cache.room_bytes = room_bytes();
  for (const std::string& line : cache_outlook(cache)) log.say(line);
  const auto& splits = setup.data.splits;
  log.say("data: " + std::to_string(splits.train.length()) + " training, " + std::to_string(splits.val.length()) +
          " validation, " + std::to_string(splits.test.length()) + " test samples; windows of " +
          std::to_string(setup.data.window_samples()) + ", " + std::to_string(setup.data.windows_per_epoch()) +
          " steps an epoch; " + counted(static_cast<uint64_t>(setup.data.threads), "thread") + " on " +
          setup.device.str());
  if (const std::string line = pin_memory_line(setup); !line.empty()) log.say(line);
  if (const std::string line = device_limit_line(setup.data); !line.empty()) log.say(line);
}

}  // namespace headroom
