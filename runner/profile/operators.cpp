#include "profile/operators.hpp"

#include <ATen/record_function.h>
#include <algorithm>
#include <iterator>
#include <memory>
#include <tuple>

#include "memory/steady_ns.hpp"

namespace headroom {

namespace {

struct OpenCall {
  const at::RecordFunction* function;  // never looked into: one that ended on another thread is gone
  size_t name_hash;
  int64_t began_ns, within_ns;
};

std::atomic<OperatorTimes*> operator_listener{nullptr};
thread_local std::vector<OpenCall> open_calls;  // outermost first

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& function) {
  open_calls.push_back({&function, std::hash<std::string_view>()(function.name()), 0, 0});
  // Last, so that the time of this is not the operator's.
  open_calls.back().began_ns = steady_ns();
  return nullptr;
}

void on_end(const at::RecordFunction& function, at::ObserverContext* /*context*/) {
  const int64_t now_ns = steady_ns();
  const auto found = std::ranges::find(open_calls.rbegin(), open_calls.rend(), &function, &OpenCall::function);
  if (found == open_calls.rend()) return;  // it began on another thread
  const OpenCall ended = *found;
  // With those above it, which ended elsewhere.
  open_calls.erase(std::prev(found.base()), open_calls.end());
  const int64_t total_ns = now_ns - ended.began_ns;
  if (!open_calls.empty()) open_calls.back().within_ns += total_ns;
  OperatorTimes* times = operator_listener;
  if (times == nullptr) return;
  const bool within_its_like = std::ranges::find(open_calls, ended.name_hash, &OpenCall::name_hash) != open_calls.end();
  times->add(
      function.name(),
      {.began_ns = ended.began_ns, .ended_ns = now_ns, .within_ns = ended.within_ns, .is_outermost = !within_its_like});
}

}  // namespace

OperatorTimes::OperatorTimes(Trace* trace) : trace_(trace) {
  operator_listener = this;
  // Thread-local callbacks come and go while a process runs, and autograd takes them along to its own threads; global
  // ones are for the start of a program.
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(on_begin, on_end)
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION, at::RecordScope::USER_SCOPE}));
}

OperatorTimes::~OperatorTimes() {
  at::removeCallback(callback_);
  operator_listener = nullptr;
}

void OperatorTimes::add(std::string_view name, const Call& call) noexcept {
  if (!counts_) return;
  const int64_t total_ns = call.ended_ns - call.began_ns, self_ns = total_ns - call.within_ns;
  self_ns_.fetch_add(self_ns, std::memory_order_relaxed);
  if (trace_ != nullptr) trace_->add(SpanKind::operator_call, name, call.began_ns, call.ended_ns);
  try {
    const MutexLock lock(mutex_);
    auto found = sums_.find(name);
    if (found == sums_.end()) found = sums_.emplace(name, Sums()).first;
    ++found->second.calls;
    found->second.self_ns += self_ns;
    if (call.is_outermost) found->second.total_ns += total_ns;
  } catch (...) {  // no memory, which the run needs more than the profile does
  }
}

std::vector<OperatorTime> OperatorTimes::by_self_time() const {
  std::vector<OperatorTime> times;
  const MutexLock lock(mutex_);
  for (const auto& [name, sums] : sums_) times.push_back({name, sums.calls, sums.self_ns, sums.total_ns});
  std::ranges::sort(times, [](const OperatorTime& a, const OperatorTime& b) {
    return std::tie(b.self_ns, a.name) < std::tie(a.self_ns, b.name);
  });
  return times;
}

}  // namespace headroom
