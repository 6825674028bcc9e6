// report/: reads run folders when all is done, and draws. Start here. report.html of a run: what it learned, what it
// held, what was planned and what became of it, on one page.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

inline constexpr const char* report_file = "report.html";

// Error(bad_input) where `run` is no run's folder.
std::string run_report(const std::filesystem::path& run);

// Writes report.html into the run's folder. Error(cannot_write), Error(bad_input).
void write_run_report(const std::filesystem::path& run);

// The same at the end of a run, which a report that cannot be made is no reason to fail: it is said on stderr.
void try_to_write_run_report(const std::filesystem::path& run);

}  // namespace headroom
