// A window whose samples are divided among the processes of a run: what they add up before its gradients are divided.
#pragma once

#include "train/rank_sums.hpp"
#include "train/setup.hpp"
#include "train/window.hpp"

namespace headroom {

// [compute] All ranks call the same in the same order, once they have done their shares.
class RankWindow {
 public:
  // REQUIRES that the setup has a group, which the window knows; both outlive it.
  RankWindow(const Setup& setup, Window& window);

  // Before a window, and where all begin it again.
  void begin();
  void begin_again() { gradients_.begin(); }
  // The group has lost ranks: what all had agreed on, those that are left may not all know.
  void begin_anew();
  // Every rank's gradients become the sums of all. TakenOnAnotherRank where another could not do its share.
  // Error(bad_input) where passes of the first window changed the model by themselves: each rank would go its own way.
  RankShares add_up(int64_t samples);
  // The window's sums become those of all ranks.
  void take_in(const RankShares& shares);
  // In place of add_up(): this rank could not do its share.
  void give_up();
  // Whether all ranks have the window's gradients; otherwise all begin it again.
  [[nodiscard]] bool complete(bool here);

 private:
  void require_no_traces();

  Model& model_;
  RankGroup& group_;
  Window& window_;
  GradientReduction& gradients_;
  StepSums scratch_;
  bool sums_hold_ = false;           // of the gradients
  std::vector<std::string> before_;  // what training passes may change, when the first window began
  bool knows_traces_ = false;        // whether they do
};

}  // namespace headroom
