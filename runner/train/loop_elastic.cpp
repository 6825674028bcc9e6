// A TrainingLoop that goes on without the ranks that are killed (train.elastic).
//
// All ranks hold the same state. It changes in two places, by a window's step and by an epoch's end, and `transitions_`
// counts that. Every rank makes a change by itself, after a vote in which all of them have said that they hold what it
// takes: RankWindow::complete(), evaluate_epoch(). A vote is a sum, so nobody has its outcome before all have voted. A
// rank votes on a change only once it has made the one before. So, wherever ranks are lost, those that are left have
// made equally many changes, or some of them one more. Those that are behind have then voted for it and hold what it
// takes: they make it too (catch_up()). Where nobody is ahead, nobody that is left has made the change, and all take
// the window or the evaluation again from its beginning. It does not matter what the lost ones had made: they leave
// nothing but files.
//
// The files are the first rank's. Each agree() tells all how long its logs are; a rank keeps what it would have logged
// since, and one that becomes the first cuts the logs back to there and goes on with that (RunLog::standby()). A
// checkpoint is written between an agreement and the next vote, to which its writer has to come: where the writer is
// lost before it, nothing has changed since, and the next one writes it again.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

#include "ranks/group.hpp"
#include "ranks/members.hpp"
#include "record/numbers.hpp"
#include "record/postmortem.hpp"
#include "train/loop.hpp"
#include "train/signals.hpp"

namespace headroom {

namespace {

// Of a first rank whose front was killed, and which the launcher kills now.
RunFolder take_lock(const std::filesystem::path& folder) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  for (;;) {
    try {
      return RunFolder::open(folder);
    } catch (const Error&) {
      if (std::chrono::steady_clock::now() > until) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

// What a rank tells those that are left with it.
struct Standing {
  double transitions, looked_for_bad_value, bad_samples;
  double scale_factor, scale_windows;  // of fp16; 0: none
};

std::vector<Standing> exchange_standings(RankGroup& group, const Standing& own) {
  std::vector<Standing> all;
  for (const std::string& bytes : group.gather({reinterpret_cast<const char*>(&own), sizeof own})) {
    Standing standing{};
    std::memcpy(&standing, bytes.data(), sizeof standing);
    all.push_back(standing);
  }
  return all;
}

}  // namespace

bool TrainingLoop::outlives_losses() {
  if (!setup_.data.is_elastic()) return false;
  setup_.data.group->outlive_losses();
  supervisor_ = getppid();
  return true;
}

// A signal tells of the supervisor's end. It would stop all others, too.
void TrainingLoop::end_with_supervisor() const {
  if (supervisor_ != 0 && getppid() != supervisor_) std::_Exit(static_cast<int>(Exit::resumable));
}

bool TrainingLoop::is_in_vain() const { return setup_.data.is_elastic() && setup_.data.group->has_lost(); }

void TrainingLoop::go_on_with_those_left() {
  for (;;) {
    try {
      return rejoin();
    } catch (const RankLost&) {  // one more
    }
  }
}

void TrainingLoop::rejoin() {
  RankGroup& group = *setup_.data.group;
  for (const int rank : group.rejoin([] { return stop_requested() != Exit::ok; })) newly_lost_.push_back(rank);
  if (group.is_first()) take_over();
  catch_up();
  make_loaders();
  agree();
  if (std::exchange(owes_checkpoint_, false) && saved_transitions_ == transitions_) write_checkpoint(saved_best_);
  if (std::exchange(owes_agreement_, false)) save_when_due();
  for (const int rank : std::exchange(newly_lost_, {})) {
    lost_ranks_.push_back({rank, position_.step, rfc3339(std::chrono::system_clock::now())});
    log_.event("rank_lost", {{"rank", rank}, {"step", position_.step}, {"left", group.ranks().count}});
  }
  group.went_on(position_.step);
}

// The run's files, in place of a first rank that is lost. What its supervisor wrote of its end is not the run's.
void TrainingLoop::take_over() {
  forget_postmortem(folder_);
  const int rank = setup_.data.ranks().launched_rank;
  if (rank == 0 || taken_over_) return;
  taken_over_.emplace(take_lock(folder_));
  log_.take_over(*taken_over_, experiment_.train.log_every);
  if (!experiment_.record.events_to.empty()) log_.send_events_to(experiment_.record.events_to);
  note_first_rank(folder_, rank);
  make_examples();
  owes_checkpoint_ = true;
}

void TrainingLoop::catch_up() {
  const auto scale = step_.loss_scale().value_or(LossScale::State{.factor = 0, .windows = 0});
  const Standing own = {static_cast<double>(transitions_), looked_for_bad_value_ ? 1.0 : 0.0,
                        static_cast<double>(bad_before_ + skipped_samples_), scale.factor,
                        static_cast<double>(scale.windows)};
  const std::vector<Standing> all = exchange_standings(*setup_.data.group, own);
  const auto [last, first] = std::ranges::minmax(all, {}, &Standing::transitions);
  std::optional<LossScale::State> begin_with = step_.loss_scale();
  if (own.transitions < first.transitions) {
    // Why a window was not finite, the one that is ahead has said.
    if (const auto gradients = step_.take_prepared()) {
      owes_agreement_ = finish_window(*gradients, "");
    } else {
      if (!is_measured_) throw std::logic_error("another rank made a change that this one has not voted for");
      finish_epoch();
    }
    begin_with = step_.loss_scale();
  } else if (last.transitions == first.transitions && begin_with) {
    // Gradients may have overflowed for some that do not know it of the others.
    const Standing lowest = std::ranges::min(all, {}, &Standing::scale_factor);
    begin_with = {lowest.scale_factor, static_cast<int64_t>(lowest.scale_windows)};
  }
  looked_for_bad_value_ = std::ranges::max(all, {}, &Standing::looked_for_bad_value).looked_for_bad_value > 0;
  bad_before_ = static_cast<uint64_t>(std::ranges::max(all, {}, &Standing::bad_samples).bad_samples);
  skipped_samples_ = 0;
  is_measured_ = false;
  step_.begin_anew(begin_with);
}

// Their shares are others now.
void TrainingLoop::make_loaders() {
  earlier_times_ = loader_times();
  train_loader_ = nullptr;  // its memory is the next one's
  train_loader_ =
      std::make_unique<Loader>(input_.source, setup_.data.splits.train, input_.applied, setup_.loader_options(true));
  if (val_loader_ != nullptr) {
    val_loader_ = nullptr;
    val_loader_ =
        std::make_unique<Loader>(input_.source, setup_.data.splits.val, input_.applied, setup_.loader_options(false));
  }
  train_loader_->seek(static_cast<uint64_t>(position_.epoch), position_.samples, /*continuous=*/true);
}

}  // namespace headroom
