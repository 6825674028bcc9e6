// Sums a window's gradients over the processes of a run, bucket by bucket, while backward still runs.
//
// A bucket is sent once this rank's last backward pass of the window has given all gradients in it. All ranks send all
// buckets in one order, whatever happened to them: a rank without samples, or whose parameters had no gradient, sends
// what is left when its share is done. So no rank waits for a bucket that another never sends. The order is that in
// which rank 0's first window completed them; no sum depends on it.
//
// Memory may run out after some buckets were sent. What was sent is this rank's whole share of these gradients, and it
// stays: the sums of all ranks arrive in the same memory. The share is then computed again for the others alone, which
// are zeroed first: no pass reaches a gradient that was sent. Each gradient's share is so added once, and the other
// ranks notice nothing but the wait.
//
// A backward pass of a plugin may add to a gradient twice, or by itself, so that it was sent too early. The version of
// the gradient tells: then all ranks begin the window again, and this one sends its buckets at the end from then on.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "ranks/group.hpp"
#include "train/gradient_buckets.hpp"
#include "train/gradient_hook.hpp"

namespace headroom {

// [compute] All ranks call begin() and finish() in turn.
class GradientReduction {
 public:
  // Makes the gradients of `trainable`, zero. Group and parameters outlive it.
  GradientReduction(RankGroup& group, std::span<Parameter* const> trainable, int64_t most_bytes = most_bucket_bytes);
  GradientReduction(const GradientReduction&) = delete;
  GradientReduction& operator=(const GradientReduction&) = delete;

  // A window, also where all begin it again.
  void begin();

  // Other ranks than before: they agree on an order again.
  void forget_order();

  // What was not sent, and may still change: gradients, and the parameters among them that are not frozen.
  std::vector<at::Tensor> open_gradients() const;
  std::vector<at::Tensor> open_parameters() const;
  bool has_sent() const { return !sent_.empty(); }

  // While it lives, the backward pass that runs is the last of this rank's share.
  class LastPass {
   public:
    explicit LastPass(GradientReduction* reduction);  // NULL: it does nothing
    ~LastPass();
    LastPass(const LastPass&) = delete;
    LastPass& operator=(const LastPass&) = delete;

   private:
    GradientReduction* const reduction_;
  };

  // This rank's share is done: sends what was not sent, and waits until every gradient is the sum of all ranks', the
  // same bits on each of them. false: a gradient changed after it was sent, and all have to begin the window again.
  [[nodiscard]] bool finish();

 private:
  struct Sent {
    std::shared_ptr<RankGroup::Sum> sum;
    std::vector<uint32_t> versions;  // of the gradients
  };
  void begin_last_pass();
  void arrived(size_t bucket);
  void note_completed(size_t bucket);
  void send_next();
  void agree_on_order();

  RankGroup& group_;
  const std::vector<GradientBucket> buckets_;
  std::vector<size_t> order_;      // in which buckets are sent
  std::vector<size_t> completed_;  // buckets in the order of this rank's backward, until all have rank 0's
  bool has_order_ = false;
  std::vector<Sent> sent_;       // the first of order_
  std::vector<size_t> missing_;  // of each bucket, gradients that the last pass has still to give
  bool in_last_pass_ = false;
  bool early_ = true;  // buckets are sent while backward runs
  std::list<GradientHook> hooks_;
};

}  // namespace headroom
