// headroom runs list | show | compare | export: what several of these files use.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "report/run_facts.hpp"

namespace headroom {

void add_runs_list(CLI::App& runs);

// The folder of `word`: a run's folder, or the end of one below `root`, "ab12cd" or
// "quick_demo/20261121-063011-ab12cd". Error(bad_input) when it is none, or several.
std::filesystem::path find_run(const std::string& word, const std::filesystem::path& root);

void add_runs_root(CLI::App& command, std::string& root);  // --runs

// A fact as people read it: sizes, times, rounded numbers.
std::string shown_fact(const RunFacts& run, const std::string& key);

}  // namespace headroom
