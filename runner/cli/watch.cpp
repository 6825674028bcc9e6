#include "memory/watch.hpp"

#include <cmath>
#include <cstdio>
#include <system_error>

#include "cli/commands.hpp"
#include "cli/watch_report.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

struct WatchWords {
  std::vector<std::string> command;
  std::string out, svg;
  double interval_seconds = 0.5;
};

void write_files(const WatchWords& words, const WatchReport& report) {
  if (!words.out.empty()) write_file_atomically(words.out, json_text(watch_json(report)) + "\n");
  if (!words.svg.empty()) write_file_atomically(words.svg, watch_svg(report));
}

// Files are no reason to end a program that somebody waits for.
void try_to_write_files(const WatchWords& words, const WatchReport& report) {
  try {
    write_files(words, report);
  } catch (const Error& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
  }
}

int watch_command(const WatchWords& words) {
  write_files(words, {.command = words.command});  // what cannot be written is said before the program runs
  WatchOptions options{.interval_seconds = words.interval_seconds};
  // So that the files are there, too, where this process is killed.
  options.tell = [&](const WatchReport& report) { try_to_write_files(words, report); };
  try {
    const WatchReport report = watch(words.command, options);
    for (const std::string& line : watch_lines(report)) std::fprintf(stderr, "[watch] %s\n", line.c_str());
    try_to_write_files(words, report);
    // watch() returns when the command has ended, so there is an end.
    return report.end->exit_code();
  } catch (const std::system_error& problem) {
    std::fprintf(stderr, "[watch] cannot start %s: %s\n", words.command.front().c_str(),
                 problem.code().message().c_str());
    return problem.code() == std::errc::no_such_file_or_directory ? 127 : 126;  // as shells have it
  }
}

}  // namespace

void add_watch(CLI::App& app, CommandLine& line) {
  auto* command = app.add_subcommand("watch", "Supervise any program: memory over time, cause of death");
  command->footer(
      "The program and its words come last, after --.\nExample: headroom watch --svg memory.svg -- python3 "
      "train.py --epochs 3");
  auto words = std::make_shared<WatchWords>();
  command->add_option("--out", words->out,
                      "JSON file with everything that was measured; updated while the program runs");
  command->add_option("--svg", words->svg, "Plot of memory by process over time; updated while the program runs");
  command->add_option("--interval", words->interval_seconds, "Seconds between two looks")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
  command->allow_extras();  // to say what is missing before them
  command->callback([words, command, &line] {
    words->command = line.behind_dashes;
    const std::vector<std::string> extras = command->remaining();
    if (!extras.empty() && extras.front().starts_with("-"))
      throw Error(Exit::bad_input, "cli", "watch has no option " + extras.front() + ": see headroom watch --help");
    if (words->command.empty() || !extras.empty()) {
      throw Error(Exit::bad_input, "cli",
                  "watch needs -- and a command: headroom watch [OPTIONS] -- " +
                      (extras.empty() ? "python3 train.py" : extras.front() + " ..."));
    }
    // The range lets it pass: nothing is above or below it.
    if (std::isnan(words->interval_seconds))
      throw Error(Exit::bad_input, "cli", "--interval must be a number of seconds from 0.01 to 3600");
    line.exit_code = watch_command(*words);
  });
}

}  // namespace headroom
