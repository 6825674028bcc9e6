#include "train/rank_window.hpp"

#include <utility>

#include "config/digest.hpp"
#include "ranks/group.hpp"

namespace headroom {

namespace {

// Digests of the model's buffers and of its state.
std::vector<std::string> changeable(Model& model) {
  std::vector<std::string> digests;
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.kind != HR_BUFFER) continue;
    const at::Tensor tensor = parameter.tensor->detach().cpu().contiguous();
    digests.push_back(Digest().add({static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}).hex());
  }
  if (model.has_state()) digests.push_back(Digest().add(model.save_state()).hex());
  return digests;
}

}  // namespace

RankWindow::RankWindow(const Setup& setup, Window& window)
    : model_(*setup.model),
      group_(*setup.data.group),
      window_(window),
      gradients_(*window.reduction()),
      scratch_(setup.model->metrics().size(), setup.device, setup.output_metrics()) {}

void RankWindow::begin() {
  begin_again();
  if (!knows_traces_) before_ = changeable(model_);
}

void RankWindow::begin_anew() {
  gradients_.forget_order();
  knows_traces_ = false;
}

// Ranks without a sample have changed nothing, so all are asked.
void RankWindow::require_no_traces() {
  if (std::exchange(knows_traces_, true)) return;
  if (group_.on_all(changeable(model_) == before_)) return;
  group_.leave();
  throw Error(Exit::bad_input, "ranks",
              "model '" + model_.id() +
                  "' changes its buffers or its state in training passes, and each process would have its own: run it "
                  "as one process");
}

RankShares RankWindow::add_up(int64_t samples) {
  sums_hold_ = gradients_.finish();
  RankShares shares = gather_shares(group_, &window_.sums(), samples, window_.reached());
  if (shares.missing >= 0)
    throw TakenOnAnotherRank(group_.launched_rank_of(shares.missing), group_.host_of(shares.missing));
  require_no_traces();
  return shares;
}

void RankWindow::take_in(const RankShares& shares) {
  window_.note_reached(shares.notes);
  window_.replace_sums([&](StepSums& sums) { headroom::add_up(shares, sums, scratch_); });
}

// The others wait for its buckets, and then for its word; what it sends they throw away.
void RankWindow::give_up() {
  (void)gradients_.finish();
  (void)gather_shares(group_, nullptr, 0);
}

bool RankWindow::complete(bool here) {
  const bool is_complete = group_.on_all(here && sums_hold_);
  if (!is_complete) begin_again();
  return is_complete;
}

}  // namespace headroom
