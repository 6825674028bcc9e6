// A TrainingLoop that is one of several processes: what they decide and measure together.
#include <array>
#include <span>
#include <utility>

#include "ranks/group.hpp"
#include "record/run_folder.hpp"
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
