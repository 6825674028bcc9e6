#include "campaign_judge.hpp"

namespace headroom {

namespace {

constexpr int does_not_fit = 5, resumable = 75;

std::string complaint_about(const std::string& what, int exit_code, const CampaignOutcome& outcome) {
  if (exit_code == 0) return "";
  const std::string ended = what + " ended with " + std::to_string(exit_code);
  if (exit_code != does_not_fit && exit_code != resumable) return ended;
  if (exit_code == resumable && !outcome.others_press) return ended + ", where nobody took memory from it";
  if (!must_finish(outcome)) return "";
  return ended + " with room for " + std::to_string(outcome.room_bytes >> 20) + " MiB, where " +
         std::to_string(outcome.peak_bytes >> 20) + " MiB are its peak without a limit";
}

}  // namespace

bool must_finish(const CampaignOutcome& outcome) {
  return 0.9 * static_cast<double>(outcome.room_bytes) >= 1.1 * static_cast<double>(outcome.peak_bytes);
}

std::string complaint(const CampaignOutcome& outcome) {
  if (outcome.oom_kills > 0) return "the kernel killed " + std::to_string(outcome.oom_kills);
  const std::string of_run = complaint_about("the run", outcome.exit_code, outcome);
  if (!of_run.empty() || !outcome.then_exit_code.has_value()) return of_run;
  return complaint_about("what came after it", *outcome.then_exit_code, outcome);
}

}  // namespace headroom
