#include "in_cgroup.hpp"

namespace headroom {

namespace {

constexpr int64_t plenty = int64_t{1} << 46;

}  // namespace

void InCgroup::SetUp() {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#endif
  const KernelCgroup trial(plenty);
  if (!trial.why_not().empty()) GTEST_SKIP() << trial.why_not();
  TrialRun::SetUp();
  write_hungry("hungry.toml");
}

StartPlace InCgroup::inside(const KernelCgroup& cgroup) const {
  StartPlace place = here();
  place.cgroup = cgroup.folder();
  return place;
}

std::vector<std::string> InCgroup::hungry(const std::vector<std::string>& words, const std::string& out) const {
  std::vector<std::string> all = {"run", "hungry.toml", "--out", out, "--plugin-dir", HEADROOM_TEST_PLUGIN_DIR};
  for (const std::string& word : words) {
    if (!word.starts_with("--")) all.emplace_back("--set");
    all.push_back(word);
  }
  return all;
}

int64_t InCgroup::measured_peak(const std::string& out) const {
  const auto summary = run_folder(out) / "summary.json";
  if (!std::filesystem::exists(summary)) return 0;
  return read_json(summary).at("memory").value("measured_peak_bytes", int64_t{0});
}

}  // namespace headroom
