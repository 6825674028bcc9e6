// What several of the commands `headroom runs list | show | compare | export` use.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "report/run_facts.hpp"

namespace headroom {

void add_runs_list(CLI::App& runs);

// The folder that `word` means: a run's folder, or the end of the path of one below `root`, "ab12cd" or
// "quick_demo/20261121-063011-ab12cd". Error(bad_input) when there is none, or several.
std::filesystem::path find_run(const std::string& word, const std::filesystem::path& root);

void add_runs_root(CLI::App& command, std::string& root);  // --runs

// A fact for people: sizes, times, rounded numbers.
std::string shown_fact(const RunFacts& run, const std::string& key);

}  // namespace headroom
