// Runs of the real program in real cgroups, drawn from all that can be beside and below them, judged by the kernel: it
// never has to kill one, and one that fits finishes.
//
//   HEADROOM_CAMPAIGN_RUNS   how many (100 unless set)
//   HEADROOM_CAMPAIGN_SEED   repeats a campaign; HEADROOM_CAMPAIGN_FROM goes on from its run of that number
//   HEADROOM_CAMPAIGN_CASE   only this one case, in the words in which it was printed
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>

#include "campaign_runs.hpp"
#include "in_cgroup.hpp"

namespace headroom {
namespace {

// The cases that are made smaller: each takes up to twenty runs more.
constexpr int most_made_smaller = 3;

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

class KernelCampaign : public InCgroup {
 protected:
  // What was wrong, with a line for each run.
  std::string judged(const std::string& title, const CampaignCase& one) {
    try {
      const CampaignOutcome outcome = runs().carry_out(one);
      const std::string wrong = complaint(outcome);
      ++ends_[outcome.exit_code];
      std::printf("%s: %s: exit %d%s, %lld killed, peak %lld MiB%s%s\n", title.c_str(), one.text().c_str(),
                  outcome.exit_code,
                  outcome.then_exit_code ? (" and " + std::to_string(*outcome.then_exit_code)).c_str() : "",
                  static_cast<long long>(outcome.oom_kills), static_cast<long long>(outcome.peak_bytes / mib),
                  wrong.empty() ? "" : ": WRONG: ", wrong.c_str());
      std::fflush(stdout);
      last_err_ = outcome.err;
      return wrong;
    } catch (const std::exception& problem) {
      std::printf("%s: %s: WRONG: %s\n", title.c_str(), one.text().c_str(), problem.what());
      return problem.what();
    }
  }

  void judge(const std::string& title, const CampaignCase& one) {
    const std::string wrong = judged(title, one);
    if (wrong.empty()) return;
    ADD_FAILURE() << wrong << "\nHEADROOM_CAMPAIGN_CASE=\"" << one.text() << "\"\n" << last_err_;
    if (made_smaller_++ >= most_made_smaller) return;
    const CampaignCase least =
        smallest(one, [&](const CampaignCase& plainer) { return !judged("  smaller", plainer).empty(); });
    std::printf("  the smallest that fails: HEADROOM_CAMPAIGN_CASE=\"%s\"\n", least.text().c_str());
  }

  CampaignRuns& runs() {
    if (!runs_) runs_.emplace(folder_);
    return *runs_;
  }

  std::optional<CampaignRuns> runs_;
  std::map<int, int> ends_;
  int made_smaller_ = 0;
  std::string last_err_;
};

TEST_F(KernelCampaign, NothingIsKilledAndWhatFitsFinishes) {
  if (const char* text = std::getenv("HEADROOM_CAMPAIGN_CASE")) {
    judge("case", CampaignCase::parse(text));
    return;
  }
  const uint64_t count = number_from("HEADROOM_CAMPAIGN_RUNS", 100), from = number_from("HEADROOM_CAMPAIGN_FROM", 0);
  const uint64_t seed = number_from("HEADROOM_CAMPAIGN_SEED", std::random_device{}());
  std::printf("%llu runs, HEADROOM_CAMPAIGN_SEED=%llu\n", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(seed));
  for (uint64_t i = from; i < count; ++i) judge(std::to_string(i), CampaignCase::draw(seed, i));
  for (const auto& [exit_code, times] : ends_) std::printf("exit %d: %d\n", exit_code, times);
}

}  // namespace
}  // namespace headroom
