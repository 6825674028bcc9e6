// The checks of `headroom plugins check` that step a model; run() lists them in order. Internal to model_checks*.cpp:
// other files call commands.hpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plugins/check_list.hpp"
#include "train/model_trial.hpp"

namespace headroom {

// [control]
class ModelChecks {
 public:
  // Makes a model in its initial state, at one of the values of train.precision. May throw DoesNotApply.
  using MakeTrial = std::function<std::unique_ptr<ModelTrial>(const std::string& precision)>;

  ModelChecks(MakeTrial make, bool is_made_up);
  std::vector<CheckResult> run();

 private:
  // Relative to the largest value: in float64, and in float32, where another order of a sum rounds differently.
  static constexpr double exact_tolerance = 1e-9, rounded_tolerance = 1e-3;

  bool has(uint32_t capability) const { return (plain_->model().capabilities() & capability) != 0; }
  void check(const std::string& name, const std::function<void()>& body);
  [[noreturn]] void refuse(const std::string& sentence) const {
    throw Error(Exit::plugin, plain_->model().id(), sentence);
  }

  void build();
  // The trial with the finest comparison, and its tolerance.
  ModelTrial& sharpest() { return exact_ ? *exact_ : *plain_; }
  double sharpest_tolerance() const { return exact_ ? exact_tolerance : rounded_tolerance; }
  bool same(const at::Tensor& a, const at::Tensor& b) const;
  static double difference(std::span<const at::Tensor> a, std::span<const at::Tensor> b);

  // Checks of training.
  void step_first();
  void require_seeded();
  void require_gradients() const;
  void require_same(const Trained& a, const Trained& b, double tolerance, const std::string& otherwise) const;
  void require_repeatable();
  void require_keyed_draws();
  void require_divisible();
  Trained one_by_one(ModelTrial& trial) const;
  void require_recomputed(const std::string& kind);
  void require_narrow(const std::string& precision);
  void require_state() const;
  void require_no_leak();

  // Checks of evaluation and prediction, in model_checks_evaluation.cpp.
  void require_pure_evaluation();
  void require_sums();
  void require_pairs();
  void require_samples_apart();
  void require_second_row(const ModelTrial& trial, size_t i, const at::Tensor& all, const at::Tensor& one) const;
  std::vector<at::Tensor> predicted(ModelTrial& trial, int64_t first, int64_t count, size_t target) const;
  void require_prediction();

  MakeTrial make_;
  bool is_made_up_;
  CheckList list_;
  std::unique_ptr<ModelTrial> plain_, exact_;  // exact_: in fp64, where the model can
  std::optional<Trained> whole_;
};

}  // namespace headroom
