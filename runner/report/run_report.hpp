// report/: reads run folders when all is done, and draws. Start here. report.html of a run: what it learned, what it
// held, what was planned and what became of it, on one page. Others also use
//   sweep_report.hpp  the page of a sweep                  prediction.hpp     that of one recording
//   run_facts.hpp     facts of a run, and filters of them  run_index.hpp      lists of runs
//   comparison.hpp    runs side by side                    wide_table.hpp     a run's scalars as a table
//   confusion.hpp     what is taken for what               examples.hpp       examples.json of a run
//   plot_frame.hpp    a plot, in a page or a file          decimated.hpp      a series of any length
//   text_table.hpp    columns on a terminal                scale.hpp          axes, and amounts as text
// The rest are parts of the pages.
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
