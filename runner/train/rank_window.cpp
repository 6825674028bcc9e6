#include "train/rank_window.hpp"

#include "ranks/group.hpp"

namespace headroom {

RankWindow::RankWindow(const Setup& setup, Window& window)
    : group_(*setup.data.group),
      window_(window),
      gradients_(window.gradients()),
      scratch_(setup.model->metrics().size(), setup.device, setup.output_metrics()) {}

RankShares RankWindow::add_up(int64_t samples) {
  RankShares shares = gather_shares(group_, &window_.sums(), samples);
  if (shares.missing >= 0) throw TakenOnAnotherRank(shares.missing, group_.host_of(shares.missing));
  gradients_.add_up(group_);
  return shares;
}

void RankWindow::take_in(const RankShares& shares) {
  window_.replace_sums([&](StepSums& sums) { headroom::add_up(shares, sums, scratch_); });
}

void RankWindow::give_up() { (void)gather_shares(group_, nullptr, 0); }

bool RankWindow::on_all(bool holds) { return group_.on_all(holds); }

}  // namespace headroom
