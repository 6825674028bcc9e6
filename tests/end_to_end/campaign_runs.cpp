#include "campaign_runs.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <unistd.h>

#include "in_cgroup.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

// Experiments of parts: a model, and the data of one axis that it learns.
constexpr const char* trial = R"([experiment]
name = "trial"
device = "cpu"
)";

constexpr const char* linear_model = R"([model]
plugin = "linear_model"
[model.options]
dropout = 0.1
)";

constexpr const char* module = R"([model]
plugin = "python"
[model.options]
file = ")" HEADROOM_SOURCE_DIR R"(/tests/end_to_end/campaign_python/net.py"
class = "Net"
inputs = ["x"]
target = "y"
loss = "mse"
)";

constexpr const char* toy_source = R"([data]
source = "toy_source"
max_samples_for_normalize = 64
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
samples = 16000
inputs = 1000
)";

constexpr const char* dataset = R"([data]
source = "python"
max_samples_for_normalize = 64
split = { train = 0.75, val = 0.25, test = 0.0 }
[data.options]
file = ")" HEADROOM_SOURCE_DIR R"(/tests/end_to_end/campaign_python/points.py"
class = "Points"
)";

constexpr const char* tds_lstm = R"(extends = ")" HEADROOM_SOURCE_DIR R"(/experiments/emg/quick_demo.toml"
[experiment]
name = "trial"
device = "cpu"
[data]
max_samples_for_normalize = 64
[data.options]
path = "data-tds_lstm"
stride = 50
[data.synth]
sessions = 6
seconds = 5.0
)";

constexpr const char* act = R"(extends = ")" HEADROOM_SOURCE_DIR R"(/experiments/act_dual_arm/quick_demo.toml"
[experiment]
name = "trial"
device = "cpu"
[data]
max_samples_for_normalize = 16
[data.options]
path = "data-act"
samples_per_episode = 8
[data.synth]
episodes = 10
steps = 30
)";

constexpr const char* spike = R"(extends = ")" HEADROOM_SOURCE_DIR R"(/experiments/spike_vrt/quick_demo.toml"
[experiment]
name = "trial"
device = "cpu"
[data.options]
path = "data-spike"
[data.synth]
sequences = 8
frames = 5
height = 64
width = 64
)";

// What "small", "middle" and "large" are, experiment by experiment.
const std::map<std::string, std::map<std::string, std::vector<std::string>>> sizes = {
    {"hungry",
     {{"small", {"train.batch_size=8", "model.options.activation_mib=2", "data.options.floats=4096"}},
      {"middle",
       {"train.batch_size=8", "model.options.activation_mib=8", "data.options.floats=262144",
        "model.options.parameters_mib=20"}},
      {"large",
       {"train.batch_size=4", "model.options.activation_mib=40", "data.options.floats=1048576",
        "model.options.parameters_mib=40"}}}},
    {"linear",
     {{"small", {"train.batch_size=512"}},
      {"middle", {"train.batch_size=2048"}},
      {"large", {"train.batch_size=8192"}}}},
    {"tds_lstm",
     {{"small", {"train.batch_size=8"}}, {"middle", {"train.batch_size=32"}}, {"large", {"train.batch_size=128"}}}},
    {"act",
     {{"small", {"train.batch_size=2"}}, {"middle", {"train.batch_size=6"}}, {"large", {"train.batch_size=16"}}}},
    {"spike",
     {{"small", {"train.batch_size=1"}}, {"middle", {"train.batch_size=2"}}, {"large", {"train.batch_size=3"}}}},
    {"module",
     {{"small", {"train.batch_size=64"}}, {"middle", {"train.batch_size=512"}}, {"large", {"train.batch_size=2048"}}}},
    {"dataset",
     {{"small", {"train.batch_size=8"}},
      {"middle", {"train.batch_size=8", "data.options.args.floats=65536"}},
      {"large", {"train.batch_size=16", "data.options.args.floats=524288"}}}},
    {"module_dataset",
     {{"small", {"train.batch_size=8", "model.options.args.inputs=4096"}},
      {"middle", {"train.batch_size=8", "data.options.args.floats=65536", "model.options.args.inputs=65536"}},
      {"large",
       {"train.batch_size=16", "data.options.args.floats=524288", "model.options.args.inputs=524288",
        "model.options.args.width=16"}}}}};

// `part`, which ends with the options of what a Python carries out, with the Python that tests use.
std::string by_python(const std::string& part) {
  const char* python = std::getenv("HEADROOM_TEST_PYTHON");
  return part + (python != nullptr ? "python = \"" + std::string(python) + "\"\n" : "");
}

int64_t bytes_below(const fs::path& folder) {
  int64_t bytes = 0;
  std::error_code gone;
  for (const auto& entry : fs::recursive_directory_iterator(folder, gone)) {
    if (entry.is_regular_file()) bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

// Removes a folder with all that was written below it, at the end of a scope.
struct Swept {
  fs::path folder;
  ~Swept() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
};

Neighbour::Growth growth_of(const CampaignCase& one, int64_t room) {
  const int64_t bytes = one.number("neighbour_mib") * mib;
  if (one.is("neighbour", "constant")) return {.bytes = bytes};
  if (one.is("neighbour", "steady"))
    return {.bytes = bytes, .wait_seconds = 1, .seconds = static_cast<double>(bytes / mib) / 15};
  // Within the tenth that memory.limit leaves to others: nobody could make way for more in no time.
  if (one.is("neighbour", "sudden")) return {.bytes = std::min(bytes, room / 20), .wait_seconds = 1.5};
  return {};
}

}  // namespace

CampaignRuns::CampaignRuns(fs::path folder) : folder_(std::move(folder)) {
  for (const auto& [name, model, data] : std::vector<std::array<std::string, 3>>{
           {"linear", linear_model, toy_source},
           {"module", by_python(module), std::string(toy_source) + "[model.options.args]\ninputs = 1000\n"},
           {"dataset", linear_model, by_python(dataset)},
           {"module_dataset", by_python(module), by_python(dataset)}})
    write_text(folder_ / (name + ".toml"), trial + model + data);
  write_text(folder_ / "tds_lstm.toml", tds_lstm);
  write_text(folder_ / "act.toml", act);
  write_text(folder_ / "spike.toml", spike);
}

void CampaignRuns::make_data(const CampaignCase& one) {
  if (!one.has_recordings() || !made_.insert(one["experiment"]).second) return;
  const Finished finished = headroom_program({"data", "synth", one["experiment"] + ".toml"}, here());
  if (finished.exit_code != 0) throw std::runtime_error(finished.err);
}

// At most four windows, an evaluation, two checkpoints.
std::vector<std::string> CampaignRuns::words(const CampaignCase& one, const std::string& limit,
                                             const std::string& out) const {
  std::vector<std::string> set = sizes.at(one["experiment"]).at(one["size"]);
  for (const auto& [key, dimension] :
       std::map<std::string, std::string>{{"train.precision", "precision"},
                                          {"train.gradient_accumulation_steps", "accumulation"},
                                          {"data.num_workers", "workers"},
                                          {"data.prefetch_factor", "prefetch"},
                                          {"train.micro_batch", "micro_batch"}}) {
    set.push_back(key + "=" + one[dimension]);
  }
  set.insert(set.end(), {"memory.limit=" + limit, "train.max_steps=4", "checkpoint.every_steps=2"});
  if (one.is("experiment", "hungry")) {
    set.insert(set.end(), {"model.options.malloc_mib=" + one["malloc_mib"], "model.options.malloc_at_step=2",
                           "data.options.samples=128"});
    if (one.is("speed", "slow_data") && limit != "off") set.emplace_back("data.options.sleep_ms=60");
    if (one.is("speed", "slow_model") && limit != "off") set.emplace_back("model.options.sleep_ms=300");
  }
  if (one.has_dataset()) set.push_back("data.options.args.keep_mib=" + one["malloc_mib"]);
  if (!one.is("child_mib", "0") && limit != "off")
    set.push_back("record.events_to=" HEADROOM_BUILD_DIR "/tests/end_to_end_hog " + one["child_mib"] + " 0.5");
  std::vector<std::string> words = {"run", one["experiment"] + ".toml", "--out", out};
  for (const char* plugins : {HEADROOM_TEST_PLUGIN_DIR, HEADROOM_BUILD_DIR "/examples"})
    words.insert(words.end(), {"--plugin-dir", plugins});
  if (one.is("plan", "off") || limit == "off") words.emplace_back("--no-plan");
  for (const std::string& word : set) words.insert(words.end(), {"--set", word});
  return words;
}

fs::path CampaignRuns::run_below(const std::string& out) const {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_ / out / "trial", none)) return entry.path();
  return {};
}

std::vector<std::string> CampaignRuns::then_words(const CampaignCase& one, const std::string& out) const {
  if (one.is("then", "nothing")) return {};
  std::vector<std::string> words = {one["then"], run_below(out).string()};
  if (one.is("then", "predict")) {
    std::error_code none;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / ("data-" + one["experiment"]), none)) {
      if (entry.path().extension() != ".hdf5") continue;
      words.insert(words.end(), {"--input", entry.path().string()});
      break;
    }
  }
  for (const char* plugins : {HEADROOM_TEST_PLUGIN_DIR, HEADROOM_BUILD_DIR "/examples"})
    words.insert(words.end(), {"--plugin-dir", plugins});
  return words;
}

const CampaignRuns::Need& CampaignRuns::need_of(const CampaignCase& one) {
  if (const auto found = needs_.find(one.need()); found != needs_.end()) return found->second;
  const Swept swept{folder_ / "free"};
  const Finished free = headroom_program(words(one, "off", "free"), here());
  if (free.exit_code != 0) throw std::runtime_error("without a limit: " + free.err);
  Need need{.peak_bytes = read_json(run_below("free") / "summary.json").at("memory").at("measured_peak_bytes"),
            .folder_bytes = bytes_below(folder_ / "free")};
  if (const auto then = then_words(one, "free"); !then.empty()) {
    const Finished after = headroom_program(then, here());
    if (after.exit_code != 0) throw std::runtime_error("without a limit, " + one["then"] + ": " + after.err);
    need.peak_bytes = std::max(need.peak_bytes, after.peak_resident_bytes);
    need.folder_bytes = bytes_below(folder_ / "free");
  }
  return needs_[one.need()] = need;
}

bool CampaignRuns::stopped(const std::vector<std::string>& words, const std::string& out) const {
  Program program(words, here());
  eventually([&] {
    const fs::path run = run_below(out);
    return program.ended() || (!run.empty() && fs::exists(run / "checkpoints/last"));
  });
  program.signal(SIGTERM);
  return program.wait().exit_code == 75;
}

CampaignOutcome CampaignRuns::carry_out(const CampaignCase& one) {
  make_data(one);
  const Need need = need_of(one);
  const bool in_memory = one.is("out", "memory");
  const std::string out =
      in_memory ? "/dev/shm/headroom-test-" + std::to_string(getpid()) : (folder_ / "runs").string();
  const Swept swept{out};
  CampaignOutcome outcome;
  outcome.peak_bytes = need.peak_bytes;
  outcome.room_bytes = static_cast<int64_t>(one.share() * static_cast<double>(need.peak_bytes));
  const Neighbour::Growth growth = growth_of(one, outcome.room_bytes);
  outcome.others_press =
      one.is("neighbour", "steady") || one.is("neighbour", "sudden") || !one.is("child_mib", "0") || in_memory;
  const int64_t others = growth.bytes + one.number("child_mib") * mib + (in_memory ? need.folder_bytes : 0);
  const std::string limit = one.is("limit", "told") ? std::to_string(outcome.room_bytes) : "auto";

  auto run_words = words(one, limit, out);
  if (one.is("resumed", "yes") && stopped(run_words, out))
    run_words = {"run",
                 "--resume",
                 run_below(out).string(),
                 "--plugin-dir",
                 HEADROOM_TEST_PLUGIN_DIR,
                 "--plugin-dir",
                 HEADROOM_BUILD_DIR "/examples"};
  else
    fs::remove_all(out);

  const KernelCgroup cgroup(outcome.room_bytes + others,
                            {.swap = one.is("swap", "on"), .oom_group = one.is("oom_group", "on")});
  if (!cgroup.why_not().empty()) throw std::runtime_error(cgroup.why_not());
  StartPlace place = here();
  place.cgroup = cgroup.folder();
  for (int64_t i = 0; i < one.number("groups"); ++i) place.groups.push_back(static_cast<gid_t>(4000000000 + i));
  std::optional<Neighbour> neighbour;
  if (growth.bytes > 0) neighbour.emplace(cgroup, growth);
  if (one.is("neighbour", "constant")) eventually([&] { return cgroup.used_bytes() >= growth.bytes; });
  const Finished finished = headroom_program(run_words, place);
  outcome.exit_code = finished.exit_code;
  outcome.err = finished.err;
  if (finished.exit_code == 0 && !one.is("then", "nothing")) {
    const Finished after = headroom_program(then_words(one, out), place);
    outcome.then_exit_code = after.exit_code;
    outcome.err += after.err;
  }
  outcome.oom_kills = cgroup.oom_kills();
  return outcome;
}

}  // namespace headroom
