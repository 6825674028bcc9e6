#include "memory/limits.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "config/sizes.hpp"
#include "memory/readable.hpp"
#include "memory/reservations.hpp"
#include "record/run_folder.hpp"
#include "report/text_table.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

void print_rooms(const Rooms& rooms) {
  TextTable table({"limit", "used", "room", "reserved", "bound"});
  for (const Room& room : rooms.rooms) {
    // Nobody else can reserve under a bound of this process alone, as RLIMIT_DATA is.
    table.add({size_text(room.bound_bytes), size_text(room.used_bytes), size_text(room.room_bytes),
               room.scope.empty() ? "-" : size_text(room.reserved_bytes), room.name});
  }
  for (const std::string& name : rooms.unset) table.add({"none", "-", "-", "-", name});
  for (const std::string& name : rooms.unknown) table.add({"unknown", "-", "-", "-", name});
  table.print();
  const std::string swap = rooms.swap_total_bytes == 0
                               ? "none"
                               : size_text(rooms.swap_free_bytes) + " of " + size_text(rooms.swap_total_bytes) +
                                     " free, which is not counted";
  std::printf("\nswap: %s\n", swap.c_str());
}

void print_runs(const std::vector<OtherRun>& runs) {
  if (runs.empty()) {
    std::printf("other runs: none\n");
    return;
  }
  std::printf("other runs:\n");
  TextTable table({"reserved", "holds", "pid", "state", "run"});
  for (const OtherRun& run : runs) {
    table.add({size_text(run.reserved_bytes), size_text(run.held_bytes), std::to_string(run.pid),
               run.waits() ? "waiting" : "running", run.name});
  }
  table.print();
}

Json as_json(const Rooms& rooms, const std::vector<OtherRun>& runs, const std::string& wanted,
             const MemoryLimit& limit) {
  Json bounds = Json::array(), others = Json::array();
  for (const Room& room : rooms.rooms) {
    bounds.push_back({{"name", room.name},
                      {"hard", room.hard},
                      {"bound_bytes", room.bound_bytes},
                      {"used_bytes", room.used_bytes},
                      {"room_bytes", room.room_bytes},
                      {"reserved_bytes", room.reserved_bytes},
                      {"claimed_bytes", room.claimed_bytes}});
  }
  for (const OtherRun& run : runs) {
    others.push_back({{"name", run.name},
                      {"pid", run.pid},
                      {"reserved_bytes", run.reserved_bytes},
                      {"held_bytes", run.held_bytes},
                      {"state", run.waits() ? "waiting" : "running"}});
  }
  return {{"held_bytes", rooms.held_bytes},
          {"rooms", bounds},
          {"not_set", rooms.unset},
          {"unknown", rooms.unknown},
          {"swap", {{"free_bytes", rooms.swap_free_bytes}, {"total_bytes", rooms.swap_total_bytes}}},
          {"other_runs", others},
          {"limit",
           {{"wanted", format_limit(wanted)},
            // Null where there is no limit.
            {"bytes", limit.bytes ? Json(*limit.bytes) : Json(nullptr)},
            {"rule", limit.rule}}}};
}

void show_limits(const std::string& text, bool json) {
  const auto wanted = parse_limit(text);
  if (!wanted) {
    throw Error(Exit::bad_input, "cli",
                "--limit " + text + ": expected auto, off, a share such as 80% or a size such as \"8 GiB\"");
  }
  Rooms rooms = read_rooms();
  const auto runs = other_runs();
  // "auto" leaves what other runs have reserved.
  set_aside(rooms, runs);
  const MemoryLimit limit = decide_limit(*wanted, rooms);
  if (json) {
    std::printf("%s\n", json_text(as_json(rooms, runs, *wanted, limit), 2).c_str());
    return;
  }
  print_rooms(rooms);
  print_runs(runs);
  const std::string bytes =
      limit.bytes ? size_text(*limit.bytes) + " (" + std::to_string(*limit.bytes) + " bytes)" : "no limit";
  std::printf("\nmemory.limit = \"%s\" gives %s\n  %s\n", format_limit(*wanted).c_str(), bytes.c_str(),
              limit.rule.c_str());
}

}  // namespace

void add_limits(CLI::App& app) {
  auto* command = app.add_subcommand("limits", "The memory limits in force, and what memory.limit makes of them");
  command->footer("Example: headroom limits --limit \"8 GiB\"");
  auto wanted = std::make_shared<std::string>("auto");
  auto json = std::make_shared<bool>(false);
  command->add_option("--limit", *wanted, "The memory.limit to ask about: auto, off, 80%, 8 GiB")
      ->capture_default_str();
  command->add_flag("--json", *json, "Print JSON");
  command->callback([wanted, json] { show_limits(*wanted, *json); });
}

}  // namespace headroom
