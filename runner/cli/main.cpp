// `headroom`: the torch-free program. Starts in milliseconds, answers what needs no tensor, and starts headroom-train
// for the rest.
#include "cli/commands.hpp"
#include "cli/trainer_program.hpp"
#include "memory/supervised.hpp"

int main(int argc, char** argv) {
  using namespace headroom;
  // First: a sweep's cgroup counts what is touched from then on.
  become_trial();
  CLI::App app("Headroom: model experiments inside the memory you have", "headroom");
  app.require_subcommand(1);
  app.set_version_flag("--version", HEADROOM_VERSION);
  CommandLine line;
  const auto hand_over = [&line] { line.exit_code = run_trainer(line.arguments); };
  RunWords run;
  define_run(app, line, run)->callback([&] { line.exit_code = run_with_rescue(run, line); });
  PlanWords plan;
  define_plan(app, line, plan)->callback(hand_over);
  ProfileWords profile;
  define_profile(app, line, profile)->callback([&] { line.exit_code = profile_in_trainer(profile, line); });
  EvaluateWords evaluate;
  define_evaluate(app, line, evaluate)->callback(hand_over);
  PredictWords predict;
  define_predict(app, line, predict)->callback(hand_over);
  ExportWords exported;
  define_export(app, line, exported)->callback([&] { line.exit_code = export_in_front(exported, line); });
  add_validate(app, line);
  add_plugins(app, line);
  add_new(app);
  add_data(app, line);
  add_checkpoint(app);
  add_limits(app);
  add_schema(app, line);
  add_postmortem(app);
  add_report(app);
  add_runs(app);
  add_sweep(app, line);
  add_watch(app, line);
  ParityWords parity;
  define_parity(app, line, parity)->callback(hand_over);
  return run_command_line(app, line, argc, argv);
}
