#include "draws.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <algorithm>
#include <mutex>

#include "headroom/sdk/error.hpp"
#include "headroom/sdk/shape_text.hpp"

namespace headroom::python {

namespace {

thread_local const DrawScope* scope_of_thread = nullptr;

at::CPUGeneratorImpl& generator() {
  static const at::Generator kept = at::detail::getDefaultCPUGenerator();
  return *at::check_generator<at::CPUGeneratorImpl>(kept);
}

// The axis along which the shapes grow from two samples to three.
std::optional<SampleAxis> growing_axis(const std::vector<int64_t>& two, const std::vector<int64_t>& three) {
  if (two.size() != three.size()) return std::nullopt;
  SampleAxis found{.axis = -1};
  for (std::size_t axis = 0; axis < two.size(); ++axis) {
    if (two[axis] == three[axis]) continue;
    const bool grows = two[axis] % 2 == 0 && three[axis] % 3 == 0 && two[axis] / 2 == three[axis] / 3;
    if (!grows || found.axis >= 0) return std::nullopt;
    found = {static_cast<int64_t>(axis), two[axis] / 2};
  }
  return found;
}

}  // namespace

SampleAxis DrawPlan::axis(uint64_t place, at::IntArrayRef shape, int64_t count) const {
  const auto two = two_.find(place), three = three_.find(place);
  if (two != two_.end() && three != three_.end()) {
    const auto found = growing_axis(two->second, three->second);
    const bool fits = found && two->second.size() == shape.size() &&
                      (found->axis < 0 || shape[static_cast<size_t>(found->axis)] == count * found->repeat);
    if (fits) return *found;
  }
  if (!shape.empty() && shape[0] == count) return {};
  const auto as_long = std::ranges::count(shape, count);
  if (as_long == 1) return {std::ranges::find(shape, count) - shape.begin(), 1};
  throw sdk::Error(HR_UNSUPPORTED,
                   "the module draws random numbers of shape " + sdk::shape_text(shape) + " in a step of " +
                       std::to_string(count) +
                       " samples, and which of them belong to which sample is not clear: draw them with "
                       "the samples along the first axis");
}

DrawScope::DrawScope(Pass pass, std::span<const uint64_t> keys, uint64_t window_key, const DrawPlan& plan,
                     DrawPlan::Shapes* seen)
    : keys_(keys),
      window_key_(window_key),
      plan_(plan),
      seen_(seen),
      outer_(scope_of_thread),
      engine_(generator().engine()),
      normal_(generator().next_float_normal_sample()),
      intercepting_(c10::DispatchKey::TESTING_ONLY_GenericWrapper) {
  generator().set_current_seed(static_cast<uint64_t>(pass));
  scope_of_thread = this;
}

DrawScope::~DrawScope() {
  scope_of_thread = outer_;
  generator().set_engine(engine_);
  generator().set_next_float_normal_sample(normal_);
}

const DrawScope* DrawScope::current() { return scope_of_thread; }

DrawScope::Draw DrawScope::begin_draw(at::IntArrayRef shape) const {
  const uint64_t place = generator().random64();
  if (seen_ != nullptr) {
    seen_->emplace(place, shape.vec());
    const bool leads = !shape.empty() && shape[0] == static_cast<int64_t>(keys_.size());
    return {place, {leads ? 0 : -1, 1}};
  }
  return {place, plan_.axis(place, shape, static_cast<int64_t>(keys_.size()))};
}

}  // namespace headroom::python
