// Carries out a case of the kernel campaign: the experiment, what is beside it, what comes after it.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "campaign_case.hpp"
#include "campaign_judge.hpp"
#include "program.hpp"

namespace headroom {

class CampaignRuns {
 public:
  // Experiments, data and runs are below `folder`, which holds hungry.toml.
  explicit CampaignRuns(std::filesystem::path folder);

  // Throws std::runtime_error where even the run without a limit fails.
  CampaignOutcome carry_out(const CampaignCase& one);

 private:
  struct Need {
    int64_t peak_bytes = 0, folder_bytes = 0;
  };

  const Need& need_of(const CampaignCase& one);
  void make_data(const CampaignCase& one);
  std::vector<std::string> words(const CampaignCase& one, const std::string& limit, const std::string& out) const;
  // The words that evaluate or predict the run below `out`; empty: nothing comes after it.
  std::vector<std::string> then_words(const CampaignCase& one, const std::string& out) const;
  // Starts a run outside any cgroup and stops it at its first checkpoint. False when it had ended before.
  bool stopped(const std::vector<std::string>& words, const std::string& out) const;
  StartPlace here() const { return {.folder = folder_, .environment = {}}; }
  std::filesystem::path run_below(const std::string& out) const;

  std::filesystem::path folder_;
  std::map<std::string, Need> needs_;
  std::set<std::string> made_;
};

}  // namespace headroom
