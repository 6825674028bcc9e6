// What trials need of memory: the tables of plans, each of which serves every trial whose model and data are the same.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>

#include "sweep/trials.hpp"

namespace headroom {

// What of a trial decides which row of a plan is its own.
struct TrialShape {
  std::string group;  // settings that decide a probe: equal text, equal probe
  int64_t batch_size = 1, accumulation = 1;
  int64_t micro_batch = 0;  // 0: auto
  int64_t window() const { return batch_size * accumulation; }
};
TrialShape shape_of(const Settings& settings, const TrainSection& train);

struct Need {
  int64_t peak_bytes = 0;   // predicted
  int64_t least_bytes = 0;  // without which it does not run
  int64_t micro_batch = 0;  // that both are predicted for
  bool fits = false;
};

class Needs {
 public:
  // What `headroom plan --json` said of a trial of that group.
  void add(const std::string& group, const nlohmann::json& plan);

  bool has(const std::string& group) const { return tables_.contains(group); }

  // nullopt: no plan tells yet. `limit_bytes` 0: none. Of an automatic micro-batch the largest that fits.
  std::optional<Need> of(const TrialShape& shape, int64_t limit_bytes) const;

 private:
  struct Row {
    int64_t peak_bytes = 0, work_bytes = 0, least_bytes = 0;
  };
  struct Table {
    std::map<std::pair<int64_t, int64_t>, Row> rows;  // by batch size and micro-batch
    bool whole = false;                               // batches cannot be divided
  };
  std::map<std::string, Table> tables_;
};

// Where the first setting needs at least what the second does, so that it fits nowhere where that does not.
bool needs_no_less(const Settings& settings, const Settings& than);

}  // namespace headroom
