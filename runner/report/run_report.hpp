// report/: reads the folders of finished runs, and draws. Start here: run_report() makes report.html of a run, one page
// with what it learned, what it held, and how the plan compares with what happened. Other folders also use
//   sweep_report.hpp  the page of a sweep                  prediction.hpp     the page of a recording
//   run_facts.hpp     facts of a run, and filters of them  run_index.hpp      lists of runs
//   comparison.hpp    runs compared                        wide_table.hpp     a run's scalars as a table
//   confusion.hpp     confusion matrices                   examples.hpp       examples.json of a run
//   plot_frame.hpp    a plot, in a page or a file          decimated.hpp      a series of any length
//   text_table.hpp    columns on a terminal                scale.hpp          axes, and amounts as text
// The others are parts of the pages.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

inline constexpr const char* report_file = "report.html";

// Error(bad_input) where `run` is no run's folder.
std::string run_report(const std::filesystem::path& run);

// Writes report.html into the run's folder. Error(cannot_write), Error(bad_input).
void write_run_report(const std::filesystem::path& run);

// The same at the end of a run. A report that cannot be made does not fail the run; a line on stderr says so.
void try_to_write_run_report(const std::filesystem::path& run);

}  // namespace headroom
