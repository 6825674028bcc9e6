#include "train/gradient_reduction.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <string>
#include <utility>

namespace headroom {

GradientReduction::GradientReduction(RankGroup& group, std::span<Parameter* const> trainable, int64_t most_bytes)
    : group_(group),
      buckets_(make_gradient_buckets(trainable, most_bytes)),
      order_(buckets_.size()),
      missing_(buckets_.size()) {
  // From here on what was begun is kept.
  sent_.reserve(buckets_.size());
  completed_.reserve(buckets_.size());
  forget_order();
  for (size_t i = 0; i < buckets_.size(); ++i) {
    for (const Parameter* parameter : buckets_[i].parameters)
      hooks_.emplace_back(*parameter, [this, i] { arrived(i); });
  }
}

void GradientReduction::begin() {
  sent_.clear();
  completed_.clear();
}

void GradientReduction::forget_order() {
  begin();
  has_order_ = buckets_.size() < 2;
  std::iota(order_.begin(), order_.end(), size_t{0});
}

std::vector<at::Tensor> GradientReduction::open_gradients() const {
  std::vector<at::Tensor> gradients;
  for (size_t i = sent_.size(); i < order_.size(); ++i) {
    for (const Parameter* parameter : buckets_[order_[i]].parameters) gradients.push_back(parameter->tensor->grad());
  }
  return gradients;
}

std::vector<at::Tensor> GradientReduction::open_parameters() const {
  std::vector<at::Tensor> parameters;
  for (size_t i = sent_.size(); i < order_.size(); ++i) {
    for (const Parameter* parameter : buckets_[order_[i]].parameters) {
      if (parameter->tensor->requires_grad()) parameters.push_back(*parameter->tensor);
    }
  }
  return parameters;
}

GradientReduction::LastPass::LastPass(GradientReduction* reduction) : reduction_(reduction) {
  if (reduction_ != nullptr) reduction_->begin_last_pass();
}

GradientReduction::LastPass::~LastPass() {
  if (reduction_ != nullptr) reduction_->in_last_pass_ = false;
}

void GradientReduction::begin_last_pass() {
  if (!early_) return;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    missing_[i] = static_cast<size_t>(std::ranges::count_if(
        buckets_[i].parameters, [](const Parameter* parameter) { return parameter->tensor->requires_grad(); }));
  }
  in_last_pass_ = true;
}

void GradientReduction::arrived(size_t bucket) {
  if (!in_last_pass_) return;
  if (missing_[bucket] > 0 && --missing_[bucket] == 0) note_completed(bucket);
  try {
    while (sent_.size() < order_.size() && missing_[order_[sent_.size()]] == 0) send_next();
  } catch (const std::bad_alloc&) {  // nothing is under way: it is sent later
  }
}

// Of a share that is computed again the first time counts.
void GradientReduction::note_completed(size_t bucket) {
  if (!has_order_ && std::ranges::find(completed_, bucket) == completed_.end()) completed_.push_back(bucket);
}

void GradientReduction::send_next() {
  const GradientBucket& bucket = buckets_[order_[sent_.size()]];
  Sent sent;
  for (const Parameter* parameter : bucket.parameters) sent.versions.push_back(parameter->tensor->grad()._version());
  sent.sum = group_.begin_to_add_up(bucket.memory);
  sent_.push_back(std::move(sent));
}

bool GradientReduction::finish() {
  while (sent_.size() < order_.size()) send_next();
  bool unchanged = true;
  for (size_t i = 0; i < order_.size(); ++i) {
    group_.end(*sent_[i].sum);
    const GradientBucket& bucket = buckets_[order_[i]];
    for (size_t j = 0; j < bucket.parameters.size(); ++j) {
      const auto version = static_cast<uint32_t>(bucket.parameters[j]->tensor->grad()._version());
      unchanged = unchanged && version == sent_[i].versions[j];
    }
  }
  early_ = early_ && unchanged;
  if (!has_order_) agree_on_order();
  return unchanged;
}

// Parameters may be used in another order than they were registered in. Rank 0 may have no samples yet: then later.
void GradientReduction::agree_on_order() {
  const std::vector<size_t>& ours = early_ ? completed_ : order_;
  const std::string told =
      group_.from_first({reinterpret_cast<const char*>(ours.data()), ours.size() * sizeof ours.front()});
  if (told.empty()) return;
  std::vector<size_t> first(told.size() / sizeof(size_t));
  std::memcpy(first.data(), told.data(), told.size());
  std::erase_if(order_, [&](size_t bucket) { return std::ranges::find(first, bucket) != first.end(); });
  order_.insert(order_.begin(), first.begin(), first.end());
  has_order_ = true;
}

}  // namespace headroom
