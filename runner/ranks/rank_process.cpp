#include "ranks/rank_process.hpp"

#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "error.hpp"
#include "memory/child_process.hpp"
#include "memory/descriptor.hpp"
#include "memory/supervised.hpp"
#include "ranks/ranks.hpp"

namespace headroom {

namespace {

Descriptor open_file(const std::filesystem::path& path, int flags) {
  Descriptor file(open(path.c_str(), flags | O_CLOEXEC, 0600));
  if (!file) throw Error(Exit::cannot_write, "ranks", "cannot open " + path.string());
  return file;
}

// Returns how many bytes there were behind `from`.
int64_t copy(const std::filesystem::path& file, int64_t from, std::FILE* to) {
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(from);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::fwrite(text.data(), 1, text.size(), to);
  std::fflush(to);
  return std::ssize(text);
}

}  // namespace

RankStarter::RankStarter(std::filesystem::path program, int count, bool is_elastic, const sigset_t& signal_mask)
    : folder_("ranks"),
      program_(std::move(program)),
      count_(count),
      is_elastic_(is_elastic),
      signal_mask_(signal_mask) {}

std::filesystem::path RankStarter::words_of(const RankProcess& process) const {
  return folder() / ("words-" + std::to_string(process.number));
}

std::filesystem::path RankStarter::results_of(const RankProcess& process) const {
  return folder() / ("result-" + std::to_string(process.number));
}

pid_t RankStarter::start(std::vector<std::string> words, const RankProcess& process) const {
  words.insert(words.begin(), program_.string());
  ChildOptions options{.environment = {rank_variable + ("=" + std::to_string(process.rank)),
                                       ranks_variable + ("=" + std::to_string(count_)),
                                       std::string(ranks_store_variable) + "=" + (folder() / "store").string(),
                                       // So that it ends with us.
                                       sweep_variable + std::to_string(getpid())},
                       .signal_mask = &signal_mask_,
                       // In a group of its own: it can be ended with its trainer.
                       .apart = true};
  if (is_elastic_) options.environment.push_back(ranks_elastic_variable + std::string("=1"));
  if (process.group < 0) options.environment.push_back(ranks_comes_back_variable + std::string("=1"));
  try {
    if (process.number == 0) return start_child(std::move(words), options);
    const Descriptor nowhere = open_file("/dev/null", O_RDWR),
                     said = open_file(words_of(process), O_WRONLY | O_CREAT | O_APPEND);
    options.stdin_file = options.stdout_file = nowhere.get();
    options.stderr_file = said.get();
    // It may come to tell the run's result.
    const Descriptor result =
        is_elastic_ ? open_file(results_of(process), O_WRONLY | O_CREAT | O_APPEND) : Descriptor();
    if (result) options.stdout_file = result.get();
    return start_child(std::move(words), options);
  } catch (const std::system_error& problem) {
    throw Error(Exit::bug, "ranks", "cannot start " + program_.string() + ": " + problem.code().message());
  }
}

int64_t RankStarter::copy_words(const RankProcess& process, int64_t from) const {
  return copy(words_of(process), from, stderr);
}

void RankStarter::show_words(const RankProcess& process) const {
  std::ifstream said(words_of(process));
  for (std::string line; std::getline(said, line);) std::fprintf(stderr, "[rank %d] %s\n", process.rank, line.c_str());
}

void RankStarter::copy_result(const RankProcess& process) const { copy(results_of(process), 0, stdout); }

}  // namespace headroom
