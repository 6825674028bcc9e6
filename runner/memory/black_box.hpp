// A small ring of what the run was doing and holding, in a mapped file: it survives SIGKILL, and tells the supervisor
// afterwards. Layout (little endian, format 1): see black_box.cpp. Written by one process; read by any, also while it
// is being written.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memory/ledger.hpp"

namespace headroom {

enum class Phase : uint32_t {
  starting,
  probing,
  loading,
  forward,
  backward,
  optimizer,
  evaluating,
  epoch_end,
  checkpoint,
  finished,
};
std::string_view phase_name(Phase phase);

struct BlackBoxRecord {
  int64_t time_ms = 0;  // since the epoch (wall clock)
  int64_t step = 0, epoch = 0;
  Phase phase = Phase::starting;
  uint32_t pressure = 0;  // rungs of the ladder in force
  int64_t micro_batch = 0;
  int64_t held_bytes = 0, limit_bytes = 0;  // U; the limit, 0: none
  int64_t room_bytes = 0;                   // how far U may grow before the nearest bound (limit, cgroup, system)
  std::array<int64_t, owner_count> live_bytes{};
  int64_t slack_bytes = 0, other_bytes = 0;
};

// The writer. set_*() are [any] and cost a store; push() is [any] and costs some 30 of them.
class BlackBox {
 public:
  // Makes `file`, 164 KB, in place of one that is there, and reserves its blocks: a disk that fills up later does not
  // matter. Error(cannot_write).
  explicit BlackBox(const std::filesystem::path& file);
  ~BlackBox();
  BlackBox(const BlackBox&) = delete;
  BlackBox& operator=(const BlackBox&) = delete;

  void set_phase(Phase phase);
  void set_position(int64_t step, int64_t epoch);
  void set_micro_batch(int64_t samples);
  // Appends a record; time, phase, step, epoch and micro_batch are filled in from what was set. Once the phase is
  // `finished`, nothing more.
  void push(BlackBoxRecord record);
  // Where a crash handler leaves the file whose code was running (crash_site.hpp), zero-terminated.
  std::span<char> crash_site();
  // The plugin's function the run is in, or that crashed (crash_site.hpp), zero-terminated.
  std::span<char> plugin_call();

 private:
  struct Mapping;
  Mapping* mapping_;
};

struct BlackBoxReading {
  int64_t pid = 0;
  int64_t started_ms = 0;         // when it was made, since the epoch
  Phase phase = Phase::starting;  // at the very end, newer than the last record
  int64_t step = 0, epoch = 0, micro_batch = 0;
  std::string crash_site;               // "": nobody crashed, or nobody could say where
  std::string plugin_call;              // "tds_lstm step"; "": in none
  std::vector<BlackBoxRecord> records;  // oldest first, at most 1,024
};

// nullopt when there is none or it is not a black box. Torn records are left out.
std::optional<BlackBoxReading> read_black_box(const std::filesystem::path& file);

// In a run folder.
inline constexpr std::string_view black_box_file = "black_box";

}  // namespace headroom
