// A TrainingLoop that goes on without the ranks that are killed, and takes in those that were started in their place
// (train.elastic).
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
//
// One that comes back has set itself up as a resumed run does. agree() finds that it waits; then all leave their group
// for the next one, of which it is the last, and once they stand equal the first hands it the state as a checkpoint.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
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

// The checkpoint with which the state is handed over, where this rank writes it.
struct HandedOver {
  HandedOver(std::filesystem::path place, bool is_written_here)
      : checkpoints(std::move(place), /*keep=*/1), is_ours(is_written_here) {}
  ~HandedOver() {
    if (is_ours) checkpoints.remove_all();
  }
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;

  Checkpoints checkpoints;
  bool is_ours;
};

// What a rank tells those that are left with it.
struct Standing {
  double is_new;  // it came back, and holds no state yet
  double transitions, looked_for_bad_value, bad_samples;
  double scale_factor, scale_windows;  // of fp16; 0: none
};

}  // namespace

bool TrainingLoop::outlives_losses() {
  if (!setup_.data.is_elastic()) return false;
  RankGroup& group = *setup_.data.group;
  members_ = is_new_ ? std::vector<int>() : group.members();
  if (group.is_first()) group.tell_run(folder_);
  group.outlive_losses();
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
  group.rejoin([] { return stop_requested() != Exit::ok; });
  if (group.is_first()) take_over();
  catch_up();
  make_loaders();
  agree();
  if (std::exchange(owes_checkpoint_, false) && saved_transitions_ == transitions_) write_checkpoint(saved_best_);
  if (std::exchange(owes_agreement_, false)) save_when_due();
  note_changes();
  group.went_on(position_.step);
}

void TrainingLoop::note_changes() {
  const auto note = [this](std::vector<int>& ranks, const char* kind, std::vector<RankChange>& all) {
    for (const int rank : std::exchange(ranks, {})) {
      all.push_back({rank, position_.step, rfc3339(std::chrono::system_clock::now())});
      log_.event(kind, {{"rank", rank}, {"step", position_.step}, {"left", setup_.data.ranks().count}});
    }
  };
  note(newly_lost_, "rank_lost", lost_ranks_);
  note(newly_back_, "rank_came_back", returned_ranks_);
}

// A rank that was killed and started again since has a place of its own.
void TrainingLoop::note_members(const std::vector<bool>& is_new) {
  const std::vector<int> members = setup_.data.group->members();
  std::vector<int> stayed;
  const auto holds = [](const std::vector<int>& ranks, int rank) {
    return std::ranges::find(ranks, rank) != ranks.end();
  };
  for (size_t i = 0; i < members.size(); ++i) {
    // Or the group in which it took the state broke before it went on.
    const bool came_back = is_new[i] || (!members_.empty() && !holds(members_, members[i]));
    (came_back ? newly_back_ : stayed).push_back(members[i]);
  }
  for (const int rank : members_) {
    if (!holds(stayed, rank)) newly_lost_.push_back(rank);
  }
  members_ = members;
}

// The run's files, in place of a first rank that is lost. What its supervisor wrote of its end is not the run's.
void TrainingLoop::take_over() {
  // Those that come back take the last places.
  if (is_new_) {
    throw Error(Exit::resumable, "ranks",
                "all ranks that held the run's state were lost: resume it from its last checkpoint");
  }
  forget_postmortem(folder_);
  if (!log_.is_standby()) return;
  taken_over_.emplace(take_lock(folder_));
  log_.take_over(*taken_over_, experiment_.train.log_every);
  if (!experiment_.record.events_to.empty()) log_.send_events_to(experiment_.record.events_to);
  note_first_rank(folder_, setup_.data.ranks().launched_rank);
  make_examples();
  owes_checkpoint_ = true;
}

void TrainingLoop::catch_up() {
  const auto scale = step_.loss_scale().value_or(LossScale::State{.factor = 0, .windows = 0});
  const Standing own = {is_new_ ? 1.0 : 0.0,
                        static_cast<double>(transitions_),
                        looked_for_bad_value_ ? 1.0 : 0.0,
                        static_cast<double>(bad_before_ + skipped_samples_),
                        scale.factor,
                        static_cast<double>(scale.windows)};
  std::vector<Standing> all = setup_.data.group->gather_values(own);
  std::vector<bool> is_new;
  for (const Standing& standing : all) is_new.push_back(standing.is_new > 0);
  std::erase_if(all, [](const Standing& standing) { return standing.is_new > 0; });
  const auto [last, first] = std::ranges::minmax(all, {}, &Standing::transitions);
  std::optional<LossScale::State> begin_with = step_.loss_scale();
  if (!is_new_ && own.transitions < first.transitions) {
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
  if (std::ranges::find(is_new, true) != is_new.end()) hand_over(static_cast<int64_t>(first.transitions));
  note_members(is_new);
}

// As a checkpoint in a place of its own: what it holds is all that a run needs to go on with the same bits.
void TrainingLoop::hand_over(int64_t transitions) {
  RankGroup& group = *setup_.data.group;
  HandedOver handed(folder_ / "ranks" / "handed_over", group.is_first());
  const std::string written = group.from_first(group.is_first() ? state_written_to(handed.checkpoints) : "");
  if (is_new_) {
    if (written.empty()) throw Error(Exit::resumable, "ranks", "the first rank could not hand its state over");
    take_state(load_checkpoint(written));
    transitions_ = transitions;
    is_new_ = false;
  }
  group.wait_for_all();
}

// Empty where that cannot be: the run goes on, and whoever came back ends.
std::string TrainingLoop::state_written_to(Checkpoints& checkpoints) try {
  position_.bad_samples = bad_before_;
  return write_state(checkpoints, /*is_best=*/false).string();
} catch (const std::exception& problem) {
  log_.say(std::string("ranks: the state cannot be handed over: ") + problem.what());
  return "";
}

// The others hold the same bits only where this rank computes as they do, with the same data.
void TrainingLoop::take_state(const LoadedCheckpoint& checkpoint) {
  const Differences differences = differences_from(checkpoint, setup_);
  require_same_mathematics(differences, folder_);
  for (const auto* found : {&differences.rounding, &differences.code}) {
    if (!found->empty()) throw Error(Exit::bad_input, "ranks", "a rank that comes back differs: " + found->front());
  }
  const auto& measured = checkpoint.at("normalizer", nlohmann::json::value_t::array);
  if (Normalizer::from_json(measured).to_json() != input_.measured.to_json())
    throw Error(Exit::data, "ranks",
                "the normalisation of a rank that comes back is another one: see that the data stay");
  restore(checkpoint);
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
