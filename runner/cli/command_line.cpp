#include "cli/command_line.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <new>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

// A closed one's number would go to the first file that is opened, and what is printed into that file. Children get
// them, too.
void open_standard_streams() {
  int file = open("/dev/null", O_RDWR);
  while (file >= 0 && file <= STDERR_FILENO) file = open("/dev/null", O_RDWR);
  if (file >= 0) close(file);
}

// Results that went to a full disk are not there; a pipe whose reader left wanted no more of them.
void require_output_written() {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  struct stat target {};
  if (written || fstat(STDOUT_FILENO, &target) != 0 || S_ISFIFO(target.st_mode) || S_ISSOCK(target.st_mode)) return;
  throw Error(Exit::cannot_write, "cli", "standard output could not be written in full: check the disk it goes to");
}

int report_bug(const std::exception& problem) {
  std::fprintf(stderr, "[bug] %s: please report this with the command that led to it\n", problem.what());
  return static_cast<int>(Exit::bug);
}

// Files that fail are errors of their own. What is left is a path that is relative to a folder that is gone.
int report_working_folder(const std::filesystem::filesystem_error& problem) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::current_path(error);
  if (!error) return report_bug(problem);
  std::fprintf(stderr, "[cli] the working folder cannot be used: %s; it may have been removed: go to another one\n",
               error.message().c_str());
  return static_cast<int>(Exit::bad_input);
}

// The kernels of the SDK pass over a word that they do not know.
void require_known_cpu_isa() {
  const char* told = std::getenv(sdk::max_cpu_isa_variable);
  if (told == nullptr || *told == '\0' || sdk::cpu_isa_named(told)) return;
  throw Error(Exit::bad_input, "cli",
              std::string("the environment variable ") + sdk::max_cpu_isa_variable + " is \"" + told +
                  "\"; it must be \"baseline\", \"avx2\" or \"avx512\"");
}

}  // namespace

std::vector<Override> ExperimentWords::overrides() const {
  std::vector<Override> list;
  for (const std::string& word : set) {
    // The first one ends the key: a value may hold more.
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(Exit::bad_input, "cli",
                  "--set " + word + ": expected key=value, for example --set train.batch_size=8");
    }
    list.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return list;
}

void add_experiment_words(CLI::App& command, ExperimentWords& words, bool file_required) {
  auto* file = command.add_option("file", words.file,
                                  "Experiment file (TOML), or the name of one that comes with Headroom: quick_demo");
  if (file_required) file->required();
  // One value an option: otherwise CLI11 takes the words behind it as further values.
  command.add_option("--set", words.set, "Override a key, e.g. --set train.batch_size=8; repeats")
      ->allow_extra_args(false);
}

void add_plugin_dirs(CLI::App& command, CommandLine& line) {
  command.add_option("--plugin-dir", line.plugin_dirs, "Folder to look for plugins in first; repeats")
      ->allow_extra_args(false);
}

void add_folder_to(CLI::App& command, std::string& file) {
  command.add_option("--folder-to", file, "File that gets the folder's path as soon as there is one, for scripts");
}

void append_words(std::vector<std::string>& words, const ExperimentWords& experiment,
                  const std::vector<std::filesystem::path>& plugin_dirs) {
  for (const std::string& word : experiment.set) words.insert(words.end(), {"--set", word});
  for (const auto& folder : plugin_dirs) words.insert(words.end(), {"--plugin-dir", folder.string()});
}

int report_no_memory() {
  constexpr const char* sentence =
      "[memory] no memory left, not even for a sentence that says who holds it; `headroom limits` shows what there "
      "is\n";
  // stderr has no buffer, so this allocates nothing.
  std::fputs(sentence, stderr);
  return static_cast<int>(Exit::does_not_fit);
}

int run_command_line(CLI::App& app, CommandLine& line, int argc, char** argv) {
  open_standard_streams();
  // stdout is for results. Lines of the log are bare sentences.
  spdlog::set_default_logger(spdlog::stderr_color_mt("headroom"));
  spdlog::set_pattern("%v");
  // The trainer gets the same words and parses them again.
  line.arguments.assign(argv + 1, argv + argc);
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "watch" || command == "sweep") {  // the parser keeps its hands off another program's words
    char** dashes = std::find(argv, argv + argc, std::string_view("--"));
    if (dashes != argv + argc) line.behind_dashes.assign(dashes + 1, argv + argc);
    argc = static_cast<int>(dashes - argv);
  }
  std::signal(SIGPIPE, SIG_IGN);  // a reader of our output that leaves does not end a run
  std::signal(SIGXFSZ, SIG_IGN);  // a file that reaches `ulimit -f` is a write that fails, with a sentence
  try {
    require_known_cpu_isa();
    app.parse(argc, argv);
    if (line.exit_code == 0) require_output_written();
    return line.exit_code;
  } catch (const CLI::ParseError& problem) {
    // --help and --version end here, too.
    return app.exit(problem) == 0 ? 0 : static_cast<int>(Exit::bad_input);
  } catch (const Error& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return static_cast<int>(problem.exit_code());
  } catch (const std::bad_alloc&) {
    return report_no_memory();
  } catch (const std::filesystem::filesystem_error& problem) {
    return report_working_folder(problem);
  } catch (const std::system_error& problem) {
    // std::thread throws these where the system refuses one.
    if (problem.code() != std::errc::not_enough_memory && problem.code() != std::errc::resource_unavailable_try_again)
      return report_bug(problem);
    std::fprintf(stderr,
                 "[memory] the system gave no memory for another thread: %s; `headroom limits` shows what "
                 "there is, `ulimit -u` how many threads may be started\n",
                 problem.what());
    return static_cast<int>(Exit::does_not_fit);
  } catch (const std::exception& problem) {
    return report_bug(problem);
  }
}

}  // namespace headroom
