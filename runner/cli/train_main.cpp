// `headroom-train`: the program with LibTorch. Started by `headroom`, which forwards the same words.
#include <new>

#include "cli/commands.hpp"
#include "cli/trainer_actions.hpp"
#include "data/services.hpp"
#include "memory/supervised.hpp"
#include "memory/tensor_allocator.hpp"
#include "plugins/host.hpp"
#include "plugins/torch_model.hpp"
#include "train/random_draws.hpp"
#include "train/shortage.hpp"
#include "train/train.hpp"

namespace {

int run(int argc, char** argv) {
  using namespace headroom;
  // In this order: the allocator before the first tensor, the services before the first plugin.
  install_tensor_allocator();
  become_supervised();
  draw_random_numbers_fast();
  set_host_torch_tag(host_torch_tag());
  register_data_services();
  CLI::App app("Headroom's trainer; use `headroom`", "headroom-train");
  app.require_subcommand(1);
  CommandLine line;
  RunWords words;
  define_run(app, line, words)->callback(within_memory([&] { line.exit_code = run_action(words, line); }));
  PlanWords plan;
  define_plan(app, line, plan)->callback(within_memory([&] { line.exit_code = plan_action(plan, line); }));
  ProfileWords profile;
  auto* profiling = define_profile(app, line, profile);
  profiling->add_option("--folder", profile.folder, "where its run folder goes")->required();
  profiling->callback(within_memory([&] { line.exit_code = profile_action(profile, line); }));
  EvaluateWords evaluate;
  define_evaluate(app, line, evaluate)->callback(within_memory([&] {
    line.exit_code = evaluate_action(evaluate, line);
  }));
  PredictWords predict;
  define_predict(app, line, predict)->callback(within_memory([&] { line.exit_code = predict_action(predict, line); }));
  ExportWords exported;
  define_export(app, line, exported)->callback(within_memory([&] { line.exit_code = export_action(exported, line); }));
  ParityWords parity;
  define_parity(app, line, parity)->callback(within_memory([&] { line.exit_code = parity_action(parity, line); }));
  add_plugin_check(*app.add_subcommand("plugins")->require_subcommand(1), line, model_check_action);
  add_trainer_only(app, line);
  return run_command_line(app, line, argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return headroom::report_no_memory();
  }
}
