#include "campaign_case.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <sys/statfs.h>
#include <unistd.h>
#include <vector>

#include "memory/cgroups.hpp"

namespace headroom {

namespace {

struct Dimension {
  std::string name, plain;
  bool need;                         // the run's need for memory depends on it
  std::vector<std::string> choices;  // the more often, the likelier
};

const std::vector<Dimension>& dimensions() {
  static const std::vector<Dimension> all = {
      {"experiment",
       "hungry",
       true,
       {"hungry", "hungry", "hungry", "linear", "tds_lstm", "act", "spike", "module", "dataset", "module_dataset"}},
      {"size", "small", true, {"small", "middle", "large"}},
      {"speed", "fast", false, {"fast", "fast", "slow_data", "slow_model"}},
      {"precision", "fp32", true, {"fp32", "fp32", "bf16", "fp64"}},
      {"accumulation", "1", true, {"1", "1", "3"}},
      {"workers", "0", true, {"0", "2"}},
      {"prefetch", "2", true, {"2", "8"}},
      {"micro_batch", "auto", true, {"auto", "auto", "2"}},
      {"malloc_mib", "0", true, {"0", "0", "0", "20", "60"}},
      {"child_mib", "0", false, {"0", "0", "0", "40", "100"}},
      {"out", "disk", false, {"disk", "disk", "memory"}},
      {"groups", "0", false, {"0", "0", "0", "350"}},
      {"neighbour", "none", false, {"none", "none", "constant", "steady", "sudden"}},
      {"neighbour_mib", "40", false, {"40", "150"}},
      {"oom_group", "off", false, {"off", "on"}},
      {"swap", "off", false, {"off", "on"}},
      {"plan", "off", false, {"off", "off", "on"}},
      {"limit", "auto", false, {"auto", "told"}},
      {"resumed", "no", false, {"no", "no", "no", "yes"}},
      {"then", "nothing", true, {"nothing", "nothing", "evaluate", "predict"}},
  };
  return all;
}

bool machine_swaps() {
  std::ifstream swaps("/proc/swaps");
  std::string heading, first;
  return std::getline(swaps, heading) && std::getline(swaps, first);
}

bool version_2_has_memory() {
  const auto folders = memory_cgroup_folders();
  return !folders.empty() && !std::filesystem::exists(folders.front() / "memory.limit_in_bytes");
}

bool shm_is_memory() {
  constexpr auto tmpfs = 0x01021994;
  struct statfs status {};
  return statfs("/dev/shm", &status) == 0 && status.f_type == tmpfs;
}

}  // namespace

CampaignCase CampaignCase::draw(uint64_t seed, uint64_t index) {
  std::seed_seq words = {seed, seed >> 32, index};
  std::mt19937_64 random(words);
  CampaignCase drawn;
  for (const Dimension& dimension : dimensions())
    drawn.values_[dimension.name] = dimension.choices[random() % dimension.choices.size()];
  // From too little for the libraries to nearly twice the need.
  const uint64_t hundredths = 30 + random() % 150;
  drawn.values_["share"] = std::to_string(static_cast<double>(hundredths) / 100).substr(0, 4);
  drawn.make_possible();
  return drawn;
}

CampaignCase CampaignCase::parse(const std::string& text) {
  CampaignCase parsed;
  for (const Dimension& dimension : dimensions()) parsed.values_[dimension.name] = dimension.plain;
  parsed.values_["share"] = "1.50";
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equal = word.find('=');
    if (equal == std::string::npos || !parsed.values_.contains(word.substr(0, equal)))
      throw std::invalid_argument("no dimension of the campaign: " + word);
    parsed.values_[word.substr(0, equal)] = word.substr(equal + 1);
  }
  parsed.make_possible();
  return parsed;
}

std::string CampaignCase::text() const {
  std::string text;
  for (const Dimension& dimension : dimensions()) text += dimension.name + "=" + (*this)[dimension.name] + " ";
  return text + "share=" + (*this)["share"];
}

std::string CampaignCase::need() const {
  std::string text;
  for (const Dimension& dimension : dimensions()) {
    if (dimension.need) text += (*this)[dimension.name] + " ";
  }
  return text;
}

bool CampaignCase::has_recordings() const {
  return is("experiment", "tds_lstm") || is("experiment", "act") || is("experiment", "spike");
}
bool CampaignCase::has_module() const { return is("experiment", "module") || is("experiment", "module_dataset"); }
bool CampaignCase::has_dataset() const { return is("experiment", "dataset") || is("experiment", "module_dataset"); }

void CampaignCase::make_possible() {
  static const bool swaps = machine_swaps(), version_2 = version_2_has_memory(), shm = shm_is_memory(),
                    torch_in_python = std::getenv("HEADROOM_TEST_PYTHON") != nullptr;
  const auto put_back = [&](const std::string& name) {
    for (const Dimension& dimension : dimensions()) {
      if (dimension.name == name) values_[name] = dimension.plain;
    }
  };
  if (has_module() && !torch_in_python) put_back("experiment");
  if (!is("experiment", "hungry")) put_back("speed");
  if (!is("experiment", "hungry") && !has_dataset()) put_back("malloc_mib");
  if (is("experiment", "act") || is("experiment", "spike") || (is("experiment", "hungry") && is("precision", "bf16")))
    put_back("precision");
  if (!has_recordings() && is("then", "predict")) values_["then"] = "evaluate";
  if (is("experiment", "spike") && is("size", "small")) put_back("micro_batch");  // a batch is one sample
  if (is("workers", "0")) put_back("prefetch");
  if (is("neighbour", "none")) put_back("neighbour_mib");
  // A child takes at once what it takes: the run can give back what it has beyond its need, and nothing below that.
  if (!is("child_mib", "0") && share() < 1) values_["share"] = std::to_string(share() + 0.7).substr(0, 4);
  if (!swaps) put_back("swap");
  if (!version_2) put_back("oom_group");
  if (!shm) put_back("out");
  if (geteuid() != 0) put_back("groups");
}

CampaignCase smallest(CampaignCase found, const std::function<bool(const CampaignCase&)>& fails) {
  for (const Dimension& dimension : dimensions()) {
    if (found.is(dimension.name, dimension.plain)) continue;
    CampaignCase plainer = found;
    plainer.values_[dimension.name] = dimension.plain;
    plainer.make_possible();
    if (fails(plainer)) found = plainer;
  }
  return found;
}

}  // namespace headroom
