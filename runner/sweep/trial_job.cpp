#include "sweep/trial_job.hpp"

#include "memory/readable.hpp"

namespace headroom {

namespace {

std::string command_line(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += " " + shell_word(word);
  return line;
}

}  // namespace

std::string job_script(const std::filesystem::path& program, const TrialFolder& folder, const JobWords& words) {
  // As TrialFolder::newest_run() finds it. The line is start_trial_process()'s.
  return "#!/bin/sh\n"
         "# A trial of a sweep. Slurm may start this again: the run then goes on where it was.\n"
         "run=$(ls -td " +
         shell_word(folder.path().string()) +
         "/*/*/experiment.toml 2>/dev/null | head -n 1)\n"
         "if [ -n \"$run\" ]; then\n"
         "  set -- run --resume \"${run%/experiment.toml}\"" +
         command_line(words.both) +
         "\n"
         "else\n"
         "  set --" +
         command_line(words.begin) + command_line(words.both) +
         "\n"
         "fi\n"
         "echo \"== $(date -u +%Y-%m-%dT%H:%M:%S.000Z) headroom $*\"\n"
         "exec " +
         shell_word(program.string()) + " \"$@\"\n";
}

std::string job_name(const std::filesystem::path& sweep) { return "headroom-" + sweep.filename().string(); }

}  // namespace headroom
