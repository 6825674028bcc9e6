// The black box: a ring of 1,024 records of what the run was doing and holding, in a mapped file. The kernel keeps its
// pages, so it survives SIGKILL. The supervisor reads it afterwards, and meanwhile to see whether the run moves. Layout
// (little endian, format 1): see black_box.cpp. One process writes it; any may read it, also meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

// The writer. All but the constructor is [any], takes no lock and allocates nothing: set_*() cost a store, push()
// some 30.
class BlackBox {
 public:
  // Makes `file` (181 KB) in place of an older one, and reserves its blocks, so that a full disk later does no harm.
  // Error(cannot_write).
  explicit BlackBox(const std::filesystem::path& file);
  ~BlackBox();
  BlackBox(const BlackBox&) = delete;
  BlackBox& operator=(const BlackBox&) = delete;

  void set_phase(Phase phase);
  void set_position(int64_t step, int64_t epoch);
  void set_micro_batch(int64_t samples);
  // Appends a record; fills in time, phase, step, epoch and micro_batch. Does nothing once the phase is `finished`.
  void push(BlackBoxRecord record);
  // For CrashNotes (crash_site.hpp): the file whose code crashed, zero-terminated. Lives as long as the box.
  std::span<char> crash_site();
  // For CrashNotes: the plugin's function that the run is in, or that crashed, zero-terminated.
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
  std::string crash_site = {};               // "": no crash, or its place is unknown
  std::string plugin_call = {};              // "tds_lstm step"; "": in none
  uint64_t call_changes = 0;                 // PluginCall::changes() at the last record
  std::vector<BlackBoxRecord> records = {};  // oldest first, at most 1,024
};

// Reads a black box while its writer lives. The file is opened once, so that a disk that stops answering later blocks
// nobody.
class BlackBoxView {
 public:
  // nullopt as read_black_box(). [any]
  static std::optional<BlackBoxView> open(const std::filesystem::path& file);
  BlackBoxView(BlackBoxView&& other) noexcept : box_(std::exchange(other.box_, nullptr)) {}
  BlackBoxView& operator=(BlackBoxView&&) = delete;
  ~BlackBoxView();

  BlackBoxReading head() const;  // without records
  BlackBoxReading whole() const;

 private:
  explicit BlackBoxView(const void* box) : box_(box) {}
  const void* box_;
};

// nullopt: there is no such file, or it is not a black box of this format. Records that were half written are left out.
// [any]
std::optional<BlackBoxReading> read_black_box(const std::filesystem::path& file);

// The black box's name in a run folder.
inline constexpr std::string_view black_box_file = "black_box";

}  // namespace headroom
