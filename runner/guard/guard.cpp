#include "guard/guard.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <torch/version.h>

#include "error.hpp"
#include "guard/guarded_process.hpp"
#include "memory/budget.hpp"
#include "memory/ledger.hpp"
#include "memory/relief.hpp"
#include "memory/tensor_allocator.hpp"

using headroom::GuardedProcess;

namespace {

constexpr int32_t done = 0, refused = 1;

void write(const std::string& sentence, char* text, size_t room) {
  if (text == nullptr || room == 0) return;
  const size_t length = std::min(sentence.size(), room - 1);
  std::memcpy(text, sentence.data(), length);
  text[length] = '\0';
}

hr_guard_reading reading_of(const headroom::BlackBoxRecord& record) {
  hr_guard_reading reading{};
  reading.time_ms = record.time_ms;
  reading.limit_bytes = record.limit_bytes;
  reading.held_bytes = reading.peak_bytes = record.held_bytes;
  for (const int64_t bytes : record.live_bytes) reading.tensor_bytes += bytes;
  reading.kept_bytes = record.slack_bytes;
  reading.other_bytes = record.other_bytes;
  return reading;
}

hr_guard_box box_of(const headroom::BlackBoxReading& box) {
  hr_guard_box found{};
  found.pid = box.pid;
  found.began_ms = box.started_ms;
  found.ended = box.phase == headroom::Phase::finished ? 1 : 0;
  for (const auto& record : box.records) {
    found.last = reading_of(record);
    if (record.held_bytes > found.most.held_bytes) found.most = found.last;
  }
  return found;
}

}  // namespace

const char* hr_guard_torch(void) { return TORCH_VERSION; }

int32_t hr_guard_limit(const char* wanted, const char* box, char* text, size_t room) {
  try {
    const auto file = box != nullptr ? std::optional<std::filesystem::path>(box) : std::nullopt;
    write(GuardedProcess::one().limit(wanted, file), text, room);
    return done;
  } catch (const headroom::Error& error) {
    write(std::string(error.sentence()), text, room);
  } catch (const std::exception& error) {
    write(error.what(), text, room);
  }
  return refused;
}

void hr_guard_now(hr_guard_reading* reading) { *reading = headroom::guard_reading(); }

int64_t hr_guard_room(void) {
  const int64_t bound = headroom::memory_bound();
  if (bound <= 0) return INT64_MAX;
  const headroom::LedgerReading ledger = headroom::read_ledger();
  return bound - headroom::cushion_bytes(bound) - ledger.held_bytes + ledger.slack_bytes;
}

void hr_guard_refused(hr_guard_reading* reading) { *reading = GuardedProcess::one().last_refusal(); }

int64_t hr_guard_refusals(void) { return headroom::tensor_refusals(); }

int64_t hr_guard_give_back(void) { return headroom::give_back_memory(INT64_MAX); }

int64_t hr_guard_recent_tensor_peak(void) { return headroom::take_recent_peak(headroom::Owner::activations); }

int32_t hr_guard_read_box(const char* box, hr_guard_box* found, char* text, size_t room) {
  try {
    const auto reading = headroom::read_black_box(box);
    if (reading) {
      *found = box_of(*reading);
      return done;
    }
    write(std::string(box) + " is no black box of this version of Headroom", text, room);
  } catch (const std::exception& error) {
    write(error.what(), text, room);
  }
  return refused;
}

void hr_guard_end(void) { GuardedProcess::one().end(); }

int64_t hr_guard_allocations(void) { return headroom::tensor_allocations(); }

void hr_guard_fail(int64_t skip) { headroom::fail_tensor_allocation(skip); }
