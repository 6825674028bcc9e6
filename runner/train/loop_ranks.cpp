// A TrainingLoop that is one of several processes: what they decide and measure together.
#include <array>
#include <span>
#include <utility>

#include "memory/readable.hpp"
#include "ranks/group.hpp"
#include "record/run_folder.hpp"
#include "train/lent_memory.hpp"
#include "train/loop.hpp"
#include "train/rank_sums.hpp"
#include "train/signals.hpp"

namespace headroom {

Exit TrainingLoop::stop_reason() const {
  if (setup_.data.group != nullptr) return agreed_stop_;
  return must_stop_ ? Exit::resumable : stop_requested();
}

// A signal, a shortage and a sample that is left out may come to one of them alone.
void TrainingLoop::agree() {
  if (setup_.data.group == nullptr) return;
  RankGroup& group = *setup_.data.group;
  const bool is_elastic = setup_.data.is_elastic();
  const Exit asked = stop_requested();
  end_with_supervisor();  // behind it: its end comes before the signal that tells of it
  // Of the first rank's files; zeros are added to them.
  const RunLog::Marks marks = is_elastic && group.is_first() ? log_.marks() : RunLog::Marks();
  const bool is_followed = is_elastic && group.is_first() && group.is_followed();
  std::array<double, 8> told = {asked == Exit::interrupted ? 1.0 : 0.0,
                                must_stop_ || asked == Exit::resumable ? 1.0 : 0.0,
                                static_cast<double>(train_loader_->skipped_samples()),
                                static_cast<double>(marks.events),
                                static_cast<double>(marks.metrics),
                                static_cast<double>(marks.memory),
                                static_cast<double>(marks.tensorboard),
                                is_followed ? 1.0 : 0.0};
  group.add_up(std::span(told).first(is_elastic ? told.size() : 3));
  const auto mark = [&told](size_t i) { return static_cast<uint64_t>(told[i]); };
  log_.settled({mark(3), mark(4), mark(5), mark(6)});
  agreed_stop_ = told[1] > 0 ? Exit::resumable : told[0] > 0 ? Exit::interrupted : Exit::ok;
  skipped_samples_ = static_cast<uint64_t>(told[2]);
  if (told[7] > 0 && agreed_stop_ == Exit::ok) group.make_way();
}

// In a whole epoch, with its validation and checkpoint, a rank has shown what it needs. What it does not need goes to
// ranks of its machine that had to divide their samples further for want of memory. In an elastic run each rank keeps
// its part, which is that of the process that comes back in its place, too.
void TrainingLoop::lend_memory() {
  if (setup_.data.group == nullptr || setup_.data.is_elastic()) return;
  RankGroup& group = *setup_.data.group;
  const MemoryPart own = {.limit_bytes = memory_.limit_bytes(),
                          .peak_bytes = read_ledger().peak_held_bytes,
                          .is_short = !step_.retry().micro_batch().is_largest()};
  const std::vector<MemoryPart> parts = group.gather_values(own);
  std::vector<std::string> hosts;
  for (int rank = 0; rank < setup_.data.ranks().count; ++rank) hosts.push_back(group.host_of(rank));
  const std::vector<int64_t> limits = lent(parts, hosts);
  const auto rank = static_cast<size_t>(setup_.data.ranks().rank);
  // Nobody may take what another one still has.
  if (limits[rank] < own.limit_bytes) memory_.set_limit(limits[rank]);
  group.wait_for_all();
  if (limits[rank] > own.limit_bytes) memory_.set_limit(limits[rank]);
  report_lent(parts, limits);
}

void TrainingLoop::report_lent(const std::vector<MemoryPart>& parts, const std::vector<int64_t>& limits) {
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    if (limits[rank] == parts[rank].limit_bytes) continue;
    const std::string name = "rank " + std::to_string(rank);
    log_.event("memory_lent",
               {{"rank", rank}, {"limit_bytes", limits[rank]}, {"limit_bytes_before", parts[rank].limit_bytes}});
    if (limits[rank] > parts[rank].limit_bytes)
      log_.say("memory: " + name + " has a limit of " + size_text(limits[rank]) + " from here on, " +
               size_text(limits[rank] - parts[rank].limit_bytes) + " more, which other ranks do not use");
  }
}

uint64_t TrainingLoop::skipped_samples() const {
  return setup_.data.group != nullptr ? skipped_samples_ : train_loader_->skipped_samples();
}

std::string TrainingLoop::first_found(std::string found) const {
  if (setup_.data.group == nullptr) return found;
  for (std::string& other : setup_.data.group->gather(found)) {
    if (!other.empty()) return std::move(other);
  }
  return "";
}

// nullopt: stopped, here or on another rank.
std::optional<StepSums> TrainingLoop::evaluate_shares(const std::function<bool(int64_t done)>& stop) {
  const auto own = [&] { return evaluate(setup_, *val_loader_, position_.step, eval_retry_, stop, &*examples_); };
  if (setup_.data.group == nullptr) return own();
  RankGroup& group = *setup_.data.group;
  std::optional<StepSums> sums;
  std::exception_ptr taken;
  try {
    sums = own();
  } catch (const TakenByOthers&) {
    taken = std::current_exception();
  }
  const RankShares shares = gather_shares(group, sums ? &*sums : nullptr, 0);
  if (taken != nullptr) std::rethrow_exception(taken);
  if (shares.missing >= 0) return std::nullopt;
  for (const std::string& json : group.gather(json_text(examples_->taken())))
    examples_->add_taken(nlohmann::json::parse(json));
  with_one_retry("the sums of an evaluation", Owner::metrics, setup_.device, setup_.advice(), [&] {
    StepSums scratch(setup_.model->metrics().size(), setup_.device, setup_.output_metrics());
    add_up(shares, *sums, scratch);
  });
  return sums;
}

}  // namespace headroom
